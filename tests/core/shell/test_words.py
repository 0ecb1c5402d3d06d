"""Words as bash takes them, with bash itself as the judge."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from readcache.core.shell.parse import parse_command
from readcache.core.shell.syntax import SimpleCommand, Unknown, Variable, WordPart, WordText, has_glob, literal

HOME = "/home/some body"


def bash_argv(words: str) -> list[str]:
    """What bash makes of the words behind a command's name."""
    script = f'set -f; printf "%s\\0" {words}'
    environment = {"HOME": HOME, "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    run = subprocess.run(["bash", "-c", os.fsencode(script)], env=environment, capture_output=True, check=True)
    return os.fsdecode(run.stdout).split("\0")[:-1]


def our_argv(words: str) -> list[str | None]:
    node = parse_command(f'printf "%s\\0" {words}')
    assert isinstance(node, SimpleCommand), words
    return [literal(word, {"HOME": HOME}) for word in node.words[2:]]


def parts(word: str) -> tuple[WordPart, ...]:
    node = parse_command(f"echo {word}")
    assert isinstance(node, SimpleCommand)
    assert node.words[1].source == word
    return node.words[1].parts


# No NUL, which bash cannot be given. Surrogates stand for bytes that are not UTF-8.
any_char = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from("\udc80\udcff")
awkward = st.sampled_from(list("\\\"'`$ \t\n\r#~{},.*?[]!|&;()<>=:@^%+-0aé😀\x7f\x01\x85\u2028"))
chars = st.one_of(awkward, awkward, any_char)
word_parts = st.one_of(
    st.text("abzAZ09_./:@%,+=^-~!]}#", min_size=1),
    st.text(chars).map(lambda text: "'" + text.replace("'", "") + "'"),
    st.lists(
        chars.map(lambda char: "\\" + char if char in '"$`\\' else char)
        | st.sampled_from(["\\a", "\\n", "\\'", "\\ ", "\\\n", "$ ", "$.", "\\!"])
    ).map(lambda inside: '"' + "".join(inside) + '"'),
    st.text("ab \\").map(lambda text: '$"' + text.replace("\\", "") + '"'),
    chars.map(lambda char: "\\" + char),
    st.sampled_from(["~", "~/", "a=~/x", "a=b:~/x", "{", "}", "{}", "a{b", "*.py", "[a-z]?", "stash@{0}", "x=", "-"]),
)
words = st.lists(st.lists(word_parts, min_size=1, max_size=5).map("".join), min_size=1, max_size=8).map(" ".join)


@given(words)
@example(r'"a\|b" "\n" "D:\src\x.go" "\\" "\$x" "\`"')
@example("-F'[|\"]' query='{ \"x\" }'")
@example("~\\\n a")
@example(r"a=~/x\:~ a=x\\:~ a='x':~")
@example("{} \\; - -- '' \"\" a''b")
def test_literal_words_are_the_words_of_bash(source: str) -> None:
    assume(not source.lstrip(" ").startswith("#") and " #" not in source)
    ours = our_argv(source)
    assume(ours and None not in ours)
    assert ours == bash_argv(source)


@pytest.mark.parametrize(
    "source",
    [
        r'"a\|b"', r'"\n"', r'"D:\oh-my-posh\src\python.go"', r"Application\ Support", r"\{\}", "'it'\\''s'", '"it\'s"',
        '$"hello"', "a\\\nb", '"a\\\nb"', "'a\\\nb'", "é'ü'\"ß\"", "a\r",
        "~", "~/x", "~'/x'", "\\~/x", "'~'", "a~", "--file=~/x", "file=~/x", "$", '"$"', "a$", "'$x'", "a=b",
        "a#b", "=", "\\",
        "{", "}", "{}", "{a}", "{a,b", "a,b}", "'{a,b}'", '"{1..3}"', "\\{a,b\\}", "{a\\,b}", "stash@{0}", "!",
        "]", "[[", "if", "in",
    ],
)  # fmt: skip
def test_a_word_is_what_bash_makes_of_it(source: str) -> None:
    ours = our_argv(source)
    if source == "{a\\,b}":  # taken for a brace expansion: unknown, which is safe
        assert ours == [None]
    else:
        assert ours == bash_argv(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$x", (Variable("x"),)),
        ("${x}", (Variable("x"),)),
        ('"$x"', (Variable("x", quoted=True),)),
        ('a"$b"c', (WordText("a"), Variable("b", quoted=True), WordText("c"))),
        ("$a$b.ts", (Variable("a"), Variable("b"), WordText(".ts"))),
        ('"$runId.$evalId"', (Variable("runId", True), WordText(".", True), Variable("evalId", True))),
        ("~/x", (Variable("HOME", quoted=True), WordText("/x"))),
        ("~", (Variable("HOME", quoted=True),)),
        ("~root/x", (Unknown("~"), WordText("root/x"))),
        ("'a b'c", (WordText("a b", quoted=True), WordText("c"))),
        ("''", (WordText("", quoted=True),)),
        ("a\\*b", (WordText("a"), WordText("*", quoted=True), WordText("b"))),
    ],
)
def test_a_word_keeps_its_parts(source: str, expected: tuple[WordPart, ...]) -> None:
    assert parts(source) == expected


@pytest.mark.parametrize(
    "unknown",
    [
        "$1", "$?", "$$", "$@", "${1}", "${x:-y}", "${x:-$(cat f)}", "${x#'}'}", "${x/\\}/a}", "${#x}", "${x[0]}",
        "$(cat f)",
        "$(a && b || c)", "$(echo ')')", "$(case x in x) a;; esac)", "$(cat <<'E'\n) ' \"\nE\n)",
        "$(( 1601 - 1311 ))", "$((1+(2)))",
        "$( (a) | b )", "$((a); b)", "`a 'b'`", "`a \\`b\\``", "<(a | b)", ">(tee f)", "$[1+2]", "@(a|b)", "!(a|(b))",
        "$'a\\'b\\n'",
    ],
)  # fmt: skip
def test_what_only_running_tells_is_unknown(unknown: str) -> None:
    assert parts(unknown) == (Unknown(unknown),)
    assert Unknown(unknown) in parts(f"pre/{unknown}'post'")


@pytest.mark.parametrize(
    "inside", ["$1", "${x:-y}", "${x:-'}", "$(cat <<'E'\n it's \" )\nE\n)", "$((1))", "`a`", '$(a "b c")']
)
def test_expansions_are_seen_in_double_quotes(inside: str) -> None:
    assert parts(f'"{inside}"') == (Unknown(inside),)


@pytest.mark.parametrize("source", ["{a,b}", "x{1..3}", "src/{a,b}/*.py", "{a,{b,c}}", "{$x,b}", "'a'{b,c}"])
def test_a_brace_expansion_makes_the_word_unknown(source: str) -> None:
    assert parts(source) == (Unknown(source),)


def test_only_an_unquoted_glob_is_a_glob() -> None:
    node = parse_command("ls *.py '*.py' \"*\" \\* a[b] a?")
    assert isinstance(node, SimpleCommand)
    assert [has_glob(word) for word in node.words] == [False, True, False, False, False, True, True]


ASSIGNED = [
    ("x=a", "a"),
    ("x='a b'", "a b"),
    ("x=", ""),
    ("x=~/a", HOME + "/a"),
    ("x=a:~/b", f"a:{HOME}/b"),
    ("x={a,b}", "{a,b}"),
    ('x="a\\"b"', 'a"b'),
    ("x=a\\ b", "a b"),
    ("x=a=~", "a=~"),
    ("x=~:~", f"{HOME}:{HOME}"),
]


@pytest.mark.parametrize(("source", "value"), ASSIGNED)
def test_an_assigned_value_is_read_as_bash_reads_it(source: str, value: str) -> None:
    node = parse_command(source)
    assert isinstance(node, SimpleCommand)
    assert [(name, literal(word, {"HOME": HOME})) for name, word in node.assignments] == [("x", value)]
    run = subprocess.run(
        ["bash", "-c", f'{source}; printf %s "$x"'], env={"HOME": HOME}, capture_output=True, check=True
    )
    assert run.stdout.decode() == value
