"""The structure of commands: what is joined how, and where heredocs, compounds and oddities end."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from readcache.core.shell import grammar
from readcache.core.shell.bashlex_backend import build
from readcache.core.shell.lexer import tokenize
from readcache.core.shell.parse import parse_command, simple_commands
from readcache.core.shell.syntax import (
    For,
    Group,
    Heredoc,
    Node,
    Opaque,
    Pipeline,
    Redirect,
    Refused,
    Sequence,
    SimpleCommand,
    Unknown,
    Variable,
    Word,
    WordText,
    literal,
)
from tests.core.shell.corpus import COMMANDS
from tests.core.shell.treesitter_backend import parse_by_tree_sitter
from tests.helpers import strategies
from tests.helpers.adversaries import beside_a_loop

BASH = shutil.which("bash") or "bash"
CAT = shutil.which("cat")


def command(*words: str) -> SimpleCommand:
    return SimpleCommand(tuple(Word((WordText(word),), word) for word in words))


def argv(node: Node | None) -> list[str | None]:
    assert isinstance(node, SimpleCommand), node
    return [literal(word, {}) for word in node.words]


def items(source: str) -> list[tuple[str, Node]]:
    node = parse_command(source)
    assert isinstance(node, Sequence), node
    return list(node.items)


def heredocs(node: Node | None) -> list[Heredoc | None]:
    assert isinstance(node, SimpleCommand), node
    return [redirect.heredoc for redirect in node.redirects]


A, B, C, D = command("a"), command("b"), command("c"), command("d")


# ------------------------------------------------------------------ chains, pipelines, simple commands


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a", A),
        ("a b", command("a", "b")),
        ("a;", A),
        ("a | b", Pipeline((A, B))),
        ("a |& b | c", Pipeline((A, B, C))),
        ("a && b || c; d", Sequence(((";", A), ("&&", B), ("||", C), (";", D)))),
        ("a || b && c", Sequence(((";", A), ("||", B), ("&&", C)))),
        ("a & b", Sequence(((";", A), ("&", B)))),
        ("a &", Sequence(((";", A), ("&", SimpleCommand(()))))),
        ("a &\nb", Sequence(((";", A), ("&", B)))),
        ("a\nb\n\n\nc\n", Sequence(((";", A), (";", B), (";", C)))),
        ("a;\nb", Sequence(((";", A), (";", B)))),
        ("a &&\n b |\n\n c", Sequence(((";", A), ("&&", Pipeline((B, C)))))),
        ("a \\\n && \\\n b", Sequence(((";", A), ("&&", B)))),
        ("# one\na # two\n# three\nb", Sequence(((";", A), (";", B)))),
        ("{ a; b; } | c", Pipeline((Group(Sequence(((";", A), (";", B))), False), C))),
        ("( a && b )", Group(Sequence(((";", A), ("&&", B))), True)),
        ("( (a) )", Group(Group(A, True), True)),
        ("a && { b || c; }", Sequence(((";", A), ("&&", Group(Sequence(((";", B), ("||", C))), False))))),
        ("if a; then b; fi", grammar.conditional([A, B])),
        ("if a\nthen b\nelif c\nthen d\nelse a\nfi", grammar.conditional([A, B, C, D, A])),
        ("if a; then a; b; fi", grammar.conditional([A, Sequence(((";", A), (";", B)))])),
        ("for i in a b; do c; done", For("i", (A.words[0], B.words[0]), C)),
        ("for i in; do c; done", For("i", (), C)),
        ("for i\ndo c; done", For("i", None, C)),
        ("for i; do c; done", For("i", None, C)),
        ("for i in a\ndo\nb\nc\ndone", For("i", (A.words[0],), Sequence(((";", B), (";", C))))),
        ("", Sequence(())),
        (" \n\t\n", Sequence(())),
        ("# only a comment", Sequence(())),
    ],
)  # fmt: skip
def test_a_script_has_this_shape(source: str, expected: Node) -> None:
    assert parse_command(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "while read x; do cat $x; done < f",
        "until a; do b; done",
        "while a; do if b; then c; fi; done 2>/dev/null",
        "case $x in a|b) cat f;; (c) d ;& *) e; esac",
        "case x in\n  a)\n    cat <<E\n;; esac\nE\n    ;;\nesac",
        "case x in esac",
        "[[ -f f && $x =~ ^(a|b)$ || ! a < b ]]",
        "[[ $x == *.py ]]",
        "(( x = (1 + 2) * 3 ))",
        "((x++)) > f",
        "for ((i = 0; i < 3; i++)); do cat $i; done",
        "for ((;;))\ndo a; done",
        "select x in a b; do c; done",
        "f() { cat f; }",
        "f ()\n{\n  cat f\n}",
        "function f { cat f; }",
        "function f() ( cat f )",
        "! grep -q x f | cat",
        "time ( a; b )",
        "time { a; b; }",
    ],
)
def test_what_has_no_shape_is_opaque_and_no_more_than_that(source: str) -> None:
    assert parse_command(source) == Opaque(source)
    assert parse_command(f"a && {source}\nb; c") == Sequence(((";", A), ("&&", Opaque(source)), (";", B), (";", C)))
    assert parse_command(f"if {source}; then a; fi | b") == Pipeline((grammar.conditional([Opaque(source), A]), B))


def test_an_arithmetic_command_is_told_from_nested_subshells() -> None:
    assert parse_command("((a) | b)") == Group(Pipeline((Group(A, True), B)), True)
    assert parse_command("((a)) ") == Opaque("((a))")


def test_time_and_coproc_are_words_of_the_command() -> None:
    assert items("a && time ./entire help > /dev/null")[1] == (
        "&&",
        SimpleCommand(command("time", "./entire", "help").words, (Redirect(">", command("/dev/null").words[0]),)),
    )
    assert argv(parse_command("time -p cat f")) == ["time", "-p", "cat", "f"]
    assert argv(parse_command("coproc cat f")) == ["coproc", "cat", "f"]


def test_reserved_words_are_words_where_they_are_not_reserved() -> None:
    words = [
        "if",
        "then",
        "else",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "while",
        "case",
        "esac",
        "{",
        "}",
        "!",
        "[[",
        "time",
    ]
    assert argv(parse_command("echo " + " ".join(words))) == ["echo", *words]
    assert argv(parse_command("'if' x")) == ["if", "x"]
    assert argv(parse_command("\\{ x")) == ["{", "x"]


def test_assignments_stand_before_the_words() -> None:
    node = parse_command("A=1 B='x y' C=$(a) cat D=2")
    assert isinstance(node, SimpleCommand)
    assert [(name, word.source) for name, word in node.assignments] == [("A", "1"), ("B", "'x y'"), ("C", "$(a)")]
    assert argv(node) == ["cat", "D=2"]
    assert parse_command("A=1") == SimpleCommand((), (), (("A", command("1").words[0]),))


def test_arrays_and_appended_values_are_unknown() -> None:
    node = parse_command("a=(1 'x )' # c )\n 2) b+=x c[1]=2 cmd")
    assert isinstance(node, SimpleCommand)
    assert [name for name, _ in node.assignments] == ["a", "b", "c"]
    assert all(isinstance(word.parts[0], Unknown) for _, word in node.assignments)
    assert argv(parse_command("declare -a x=(1 2)")) == ["declare", "-a", None]
    for words in ("if fi", "! -name x -o \\( y \\)", "[1]=x [2]=$(a)", '"$@" {a,b} *.py', "for while", "b=(c)"):
        assert argv(parse_command(f"a=({words}) cat f")) == ["cat", "f"]


# ------------------------------------------------------------------ redirections


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<f", ("<", "f", None)),
        ("> f", (">", "f", None)),
        ("2>/dev/null", (">", "/dev/null", 2)),
        ("2>&1", (">&", "1", 2)),
        (">&2", (">&", "2", None)),
        ("2>&-", (">&", "-", 2)),
        ("&>f", ("&>", "f", None)),
        ("&>>f", ("&>>", "f", None)),
        (">>f", (">>", "f", None)),
        (">|f", (">|", "f", None)),
        ("<>f", ("<>", "f", None)),
        ("0<&3", ("<&", "3", 0)),
        ("<<<'a b'", ("<<<", "a b", None)),
    ],
)
def test_a_redirection_is_understood_wherever_it_stands(source: str, expected: tuple[str, str, int | None]) -> None:
    for whole in (f"a b {source}", f"a {source} b", f"{source} a b"):
        node = parse_command(whole)
        assert argv(node) == ["a", "b"]
        assert isinstance(node, SimpleCommand)
        [redirect] = node.redirects
        assert redirect.target is not None
        assert (redirect.op, literal(redirect.target, {}), redirect.fd) == expected
    for compound in ("{ a; }", "if a; then b; fi", "for i in a; do b; done"):
        node = parse_command(f"{compound} {source}")
        assert isinstance(node, (Group, For))
        assert [found.op for found in node.redirects] == [expected[0]]


def test_a_number_apart_from_its_operator_is_a_word() -> None:
    assert argv(parse_command("echo 2 >f")) == ["echo", "2"]
    assert argv(parse_command("echo a2>f")) == ["echo", "a2"]


# ------------------------------------------------------------------ heredocs


def test_a_heredoc_is_taken_out_of_the_line() -> None:
    node = parse_command("cat > f <<EOF\n$x `a` 'it\n# no comment\n\nEOF\n")
    assert heredocs(node) == [None, Heredoc("$x `a` 'it\n# no comment\n\n", quoted=False)]


@pytest.mark.parametrize("word", ["'EOF'", '"EOF"', "\\EOF", "E'O'F"])
def test_a_quoted_heredoc_is_taken_literally(word: str) -> None:
    node = parse_command(f"cat <<{word}\na `b` $(c \" '\nEOF\n")
    assert heredocs(node) == [Heredoc("a `b` $(c \" '\n", quoted=True)]


def test_two_heredocs_on_a_line_follow_one_another() -> None:
    node = parse_command("cat >a <<'E1' && cat >b << E2\none\nE2\nE1\ntwo\nE2\ncat a")
    assert isinstance(node, Sequence)
    assert [op for op, _ in node.items] == [";", "&&", ";"]
    assert heredocs(node.items[0][1])[1] == Heredoc("one\nE2\n", quoted=True)
    assert heredocs(node.items[1][1])[1] == Heredoc("two\n", quoted=False)
    assert argv(node.items[2][1]) == ["cat", "a"]


def test_the_line_goes_on_behind_a_heredoc() -> None:
    node = parse_command("python3 - <<'PY' 2>&1 | head -5 && cat f || exit\nx = '\nPY\ncat g")
    assert isinstance(node, Sequence)
    assert [op for op, _ in node.items] == [";", "&&", "||", ";"]
    first = node.items[0][1]
    assert isinstance(first, Pipeline)
    assert argv(first.commands[0]) == ["python3", "-"]
    assert heredocs(first.commands[0]) == [Heredoc("x = '\n", quoted=True), None]


def test_tabs_are_allowed_before_the_end_with_a_dash() -> None:
    assert heredocs(parse_command("cat <<-E\n\ta\n\t\tE\n")) == [Heredoc("\ta\n", quoted=False, strip_tabs=True)]
    assert heredocs(parse_command("cat <<E\n\tE\nE\n")) == [Heredoc("\tE\n", quoted=False)]
    assert heredocs(parse_command("cat <<E\n E\nE \nE")) == [Heredoc(" E\nE \n", quoted=False)]


def test_a_heredoc_may_end_with_the_script() -> None:
    assert heredocs(parse_command("cat <<E\na\nb")) == [Heredoc("a\nb\n", quoted=False)]
    assert heredocs(parse_command("cat <<E")) == [Heredoc("", quoted=False)]


def test_a_heredoc_stays_inside_its_substitution() -> None:
    node = parse_command('git commit -m "$(cat <<\'EOF\'\nfix: it\'s (a) "b"\n\nEOF\n)" && cat f')
    assert isinstance(node, Sequence)
    assert argv(node.items[0][1]) == ["git", "commit", "-m", None]
    assert argv(node.items[1][1]) == ["cat", "f"]


def test_a_heredoc_inside_a_compound_is_found() -> None:
    node = parse_command("if a; then cat <<E | b\nx\nfi\nE\nfi\nc")
    assert isinstance(node, Sequence)
    assert isinstance(node.items[0][1], Group)
    assert isinstance(node.items[0][1].body, Sequence)
    (_, body) = node.items[0][1].body.items[1]
    assert isinstance(body, Pipeline)
    assert heredocs(body.commands[0]) == [Heredoc("x\nfi\n", quoted=False)]
    assert parse_command("for i in a; do cat <<E\n$i\nE\ndone") is not None


def test_a_heredoc_that_waits_is_not_lost_behind_an_opaque_construct() -> None:
    node = parse_command("cat <<A; case x in x) cat <<B;; esac; cat <<C\na\nA\nb\nB\nc\nC\n")
    assert isinstance(node, Sequence)
    assert heredocs(node.items[0][1]) == [Heredoc("a\n", quoted=False)]
    assert isinstance(node.items[1][1], Opaque)
    assert heredocs(node.items[2][1]) == [Heredoc("c\n", quoted=False)]


def first_heredoc(source: str) -> Heredoc:
    node = parse_command(source)
    assume(node is not None)
    while isinstance(node, (Sequence, Pipeline)):
        node = node.items[0][1] if isinstance(node, Sequence) else node.commands[0]
    [found] = heredocs(node)
    assert found is not None
    return found


def bash_output(source: str) -> str:
    run = subprocess.run([BASH, "-c", source], capture_output=True, check=False, env={"PATH": "/nowhere"})
    return run.stdout.decode()


@given(
    st.lists(st.text("E \t'\"\\$`a#", max_size=4), max_size=6),
    st.sampled_from(["'E'", "\\E", '"E E"', "''"]),
    st.booleans(),
)
def test_a_quoted_heredoc_ends_where_bash_ends_it(body: list[str], word: str, dash: bool) -> None:
    source = f"{CAT} <<{'-' if dash else ''}{word}\n" + "\n".join(body) + "\n"
    found = first_heredoc(source)
    shown = "".join(line.lstrip("\t") for line in found.body.splitlines(True)) if dash else found.body
    assert bash_output(source) == shown


@given(st.lists(st.text("E \t'\"\\a#", max_size=4), max_size=6))
def test_an_unquoted_heredoc_ends_where_bash_ends_it(body: list[str]) -> None:
    source = f"{CAT} <<E\n" + "\n".join(body) + "\n\nE\n"
    found = first_heredoc(source)
    assert bash_output(source) == re.sub(r"\\(\n|\\)", lambda match: match.group(1).strip("\n"), found.body)


# ------------------------------------------------------------------ refusals, robustness, speed


@pytest.mark.parametrize(
    "source",
    [
        "'", '"', "`", "$(", "${x", "$((1)", "$'a", "a |", "| a", "a &&", "&& a", "a | | b", "a ;; b", "; a",
        "a; ; b", "& a", "(", ")",
        "a )", "( a", "{ a;", "if a; then b", "if a; fi", "for in; do", "for i in a; b; done", "done",
        "case x in a) b", "[[ a", "a >",
        "a > | b", "a <<", "echo (a)", "a=(b", "f() a", "while a; do", "a\0b",
    ],
)  # fmt: skip
def test_what_bash_refuses_is_refused(source: str) -> None:
    assert parse_command(source) is None


def test_a_missing_parser_refuses_only_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bashlex", None)
    monkeypatch.setitem(sys.modules, "bashlex.parser", None)
    assert parse_command("cd d && cat <<'E' | b\nE") is not None
    assert parse_command("if nobody; then parsed this; fi") is None


def test_simple_commands_need_no_parser() -> None:
    plain = ["cd d && nl -ba f | sed -n '10,20p'", 'cat f 2>/dev/null || cat "g h" 2>&1; x=1', "a\nb *.c ~"]
    script = (
        "import sys; from readcache.core.shell.parse import parse_command; "
        f"assert all(map(parse_command, {plain!r})); "
        "assert 'bashlex' not in sys.modules; "
        "assert parse_command('if a; then b; fi'); assert 'bashlex' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_carriage_returns_belong_to_words_as_in_bash() -> None:
    assert items("cat f\r\ncat g")[0][1] == command("cat", "f\r")


def test_text_of_any_script_is_kept() -> None:
    assert argv(parse_command("cat 'naïve/日本.txt' 😀")) == ["cat", "naïve/日本.txt", "😀"]
    assert argv(parse_command("cat \udcff '\udcff\u2028'")) == ["cat", "\udcff", "\udcff\u2028"]
    assert argv(parse_command("cat a\u00a0b\u3000c")) == ["cat", "a\u00a0b\u3000c"]  # blanks for Python, not for bash


soup = st.lists(
    st.sampled_from(
        [
            "a", "b c", "'x y'", '"$z"', "$(a | b)", "x=1", ">f", "2>&1", "<<E", "\n", "\nE\n", ";", "&", "&&",
            "||", "|",
            "|&", "(", ")", "{", "}", "if", "then", "else", "elif", "fi", "for", "i", "in", "do", "done", "while",
            "case",
            "esac", "!", "[[", "]]", "((", "))", "time", "function", "f()", "# c", "\\\n", ";;", "a=(", "`", '"', "'",
            "$((", "${x:-", "\0", "\udc80", "select", "coproc",
        ]
    ),
    max_size=14,
)  # fmt: skip


@given(soup.map(" ".join) | soup.map("".join) | strategies.texts())
@example("((" * 400)
@example("$(" * 3000)
@example('"$(' * 3000)
@example("{ " * 3000)
@example("$'\\U99999999'")
@example("{\U0010a2cc")  # ends the process when tree-sitter-bash sees it
def test_parsing_never_raises(source: str) -> None:
    for parse in (parse_command, parse_by_tree_sitter):
        assert parse(source) == parse(source)


simple = st.lists(
    st.sampled_from(
        [
            "a", "'x y'", '"b"', "$z", "x=1", ">f", "2>&1", "<<E", "\n", "\nE\n", ";", "&", "&&", "||", "|", "|&",
            "[[ a ]]",
            "((1))", "case x in y) a;; esac", "# c\n", "\\\n", "time", "a=(1)",
        ]
    ),
    max_size=12,
).map(" ".join)  # fmt: skip


@given(simple)
def test_the_short_way_gives_what_bashlex_gives(source: str) -> None:
    try:
        found = tokenize(source)
    except Refused:
        return
    node = grammar.flat(source, found)
    if node is not None:
        assert build(source, found) == node


compound = st.recursive(
    st.sampled_from(["a", "b 'x y' >f", "x=1", "[[ a ]]", "time a", "cat <<<x"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" | ", " && ", " || ", "; ", "\n", " & "]), inner).map("".join),
        inner.map(lambda one: f"{{ {one}\n}}"),
        inner.map(lambda one: f"( {one} ) 2>&1"),
        st.tuples(inner, inner).map(lambda two: f"if {two[0]}\nthen {two[1]}\nfi >f"),
        inner.map(lambda one: f"for i in a 'b c'; do {one}\ndone"),
        inner.map(lambda one: f"while a; do {one}\ndone"),
        inner.map(lambda one: f"case x in y) {one}\n;; esac"),
        inner.map(lambda one: f"f() {{ {one}\n}}"),
    ),
    max_leaves=6,
)


@given(compound)
def test_whatever_bash_accepts_is_parsed(source: str) -> None:
    accepted = subprocess.run(["bash", "-n", "-c", source], capture_output=True, check=False).returncode == 0
    assert (parse_command(source) is not None) == accepted


@pytest.mark.parametrize("number", COMMANDS)
def test_a_recorded_command_is_parsed(number: int) -> None:
    assert parse_command(COMMANDS[number]) is not None


def test_a_variable_in_a_recorded_path_is_seen() -> None:
    word = items(COMMANDS[6])[0][1]
    assert isinstance(word, SimpleCommand)
    assert [part for part in word.words[3].parts if isinstance(part, Variable)] == [
        Variable("runId"),
        Variable("evalId"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "echo " + "'a b' " * 2000,
        "python3 -c \"" + "print('x\\n')\n" * 1000 + '"',
        "cat > f <<'EOF'\n" + "x = '`$(\n" * 1500 + "EOF",
        "a && " * 2400 + "b",
    ],
)  # fmt: skip
def test_twelve_kilobytes_take_no_time(source: str) -> None:
    assert len(source) >= 12_000
    assert beside_a_loop(lambda: parse_command(source)) < 8
    assert parse_command(source) is not None


@pytest.mark.parametrize("source", ["case", "case\n", "a | case #"])
def test_a_case_without_a_word_is_refused(source: str) -> None:
    assert parse_command(source) is None
    assert simple_commands(source) == []
