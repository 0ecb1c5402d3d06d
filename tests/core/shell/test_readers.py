"""What commands print, where the real tools cannot be asked: names of renderings, places, doubt, and never an error."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from readcache import Outcome, Reason, Session
from readcache.core.model.claims import OPAQUE, UNPARSED, Anything, Claim, FileLines, Literal
from readcache.core.model.paths import canonical_path
from readcache.core.shell.read import read_command

ANY = Anything()


def claims(command: str) -> list[Claim]:
    return list(read_command(command, "/w").claims)


def lines(path: str) -> FileLines:
    return FileLines((f"/w/{path}",))


def some(path: str) -> FileLines:
    return FileLines((f"/w/{path}",), None)


UNFORESEEN = [
    "cat -A f",
    "cat -ET f | sed -n '2,4p'",
    "head -5 f | cat -A",
    "cat -b f",
    "nl f",
    "nl -ba -i5 f",
    "nl -ba -n ln f",
    "sed 's/a/b/' f",
    "sed -n '5{s/a/b/;p}' f",
    "sed = f",
    "grep x f | cat -n",
    "echo $'a\\n'",
    "printf '%s\\n' x < f",
    "git cat-file blob HEAD:f; cat $X",
    "wc -l f",
    "grep -c x f",
    "grep -l x f g",
    "grep -o x f",
    "grep x f g",
    "grep -n x *.py",
    "grep -r x .",
    "grep -rn x src",
    "rg -n x .",
    "find . -exec cat {} +",
    "ls | xargs cat",
    "cat $F",
    'cat "$(ls)"',
    "cat `ls`",
    "cat ${F:-x}",
    "cat f &",
    "head -z f",
    "head --unknown f",
    "tail -f f",
    "head -20 a *.py",
    "cat f | wc",
    "cat f | python3 -c 'import sys; print(len(sys.stdin.read()))'",
    "git diff -- f",
    "git log -p f",
    "git show HEAD",
    "git show HEAD:",
    "git -C x show HEAD:f",
    "echo -n x | cat; echo $X",
    "printf '%d\\n' 3 < f",
    "case x in x) cat f;; esac",
    "f() { cat f; }; f",
    "while true; do cat f; done",
    "ssh host cat f",
    "docker exec x cat f",
    "sudo -i cat f",
    "python3 script.py < f",
    "awk 'NR>=3 && NR<=9' f",
    "cat f | sort",
    "cut -d: -f1 f",
    "jq . f",
    "tac f",
    "less f",
    "bat -p f",
    "python3 -c \"print(open('f').read(), end='')\"",
    "python3 - <<'E'\nprint(open('f').read())\nE",
    "bash script.sh < f",
    'bash -c "$X" < f',
    "source f | cat",
]


@pytest.mark.parametrize("command", UNFORESEEN)
def test_what_cannot_be_told_is_anything(command: str) -> None:
    assert claims(command) == [ANY]


PATHS = {
    "cat /abs/./x//f": "/abs/x/f",
    "cat /abs/./x/../f": "/abs/x/../f",  # `x` may be a link
    "cat ./x/../f": "/w/x/../f",
    "cd x/..; cat f": "/w/f",
    "cat ../f": "/f",
    "cat ~/f": "~/f",
    "cat $HOME/f": "~/f",
    'cat "${HOME}/a b"': "~/a b",
    "cat '~/f'": "/w/~/f",
    "cat \\~/f": "/w/~/f",
    "cat D:/a/f": "/d/a/f",
    'cat "D:\\a\\f"': "/d/a/f",
    "cat /d/a/f": "/d/a/f",
    "cat a\\ b": "/w/a b",
    "cat 'a*b'": "/w/a*b",
    "cd d; cat f": "/w/d/f",
    "cd d/e && cd .. && cat f": "/w/d/f",
    "cd; cat f": "~/f",
    "cd ~/x; cat f": "~/x/f",
    "cd D:/x; cat f": "/d/x/f",
    "(cd d); cat f": "/w/f",
    "cd d | true; cat f": "/w/f",
    "{ cd d; }; cat f": "/w/d/f",
    "cat $PWD/f": "/w/f",
    "D=/abs; cat $D/f": "/abs/f",
    "A=a B=b; cat $A$B": "/w/ab",
    "cat -- -f": "/w/-f",
    "cat /w//f": "/w/f",
    "cat //f": "/f",
}


@pytest.mark.parametrize(("command", "path"), PATHS.items())
def test_a_file_has_one_name(command: str, path: str) -> None:
    assert claims(command) == [FileLines((path,))]


LOST = [
    "cd $X; cat f",
    "cd d && cd - && cat f",
    "pushd d >/dev/null; cat f",
    "pushd d >/dev/null; popd >/dev/null; cat f",
    "cd d || cd e; cat f",
    "if x; then cd d; fi; cat f",
    "F=a; F=$(ls); cat $F",
    "F='a b'; cat $F",
    "F=a; read F; cat $F",
    "if x; then F=a; fi; cat $F",
]


@pytest.mark.parametrize("command", LOST)
def test_a_place_that_is_not_known_is_no_file(command: str) -> None:
    assert claims(command) == [ANY]


def test_a_test_prints_nothing() -> None:
    assert claims("[[ -f f ]] && cat f") == [lines("f")]
    assert claims("((X > 1)); cat f") == [lines("f")]


def test_an_absolute_path_needs_no_directory() -> None:
    assert claims("cd $X; cat /abs") == [FileLines(("/abs",))]


def test_files_that_a_glob_names_are_not_known() -> None:
    assert claims("cat src/*.py") == [ANY]
    assert claims('for f in src/*.py; do cat "$f"; done') == [some("src/*.py")]
    assert claims('for f in src/*.py; do echo "$f"; cat "$f"; done') == [ANY]
    assert claims("cat a src/*.py | grep x") == [ANY]


def test_a_blob_is_not_the_file() -> None:
    assert claims("git show HEAD~1:src/a.py") == [FileLines(("git:HEAD~1:src/a.py",))]
    assert claims("git show main:a | sed -n '3,5p'") == [FileLines(("git:main:a",), (3, 5))]


def test_borders_between_files_in_a_pipe_are_unknown() -> None:
    assert claims("cat a b | sed -n '5,10p'") == [FileLines(("/w/a", "/w/b"), None)]
    assert claims("{ cat a; cat b; } | head -5") == [FileLines(("/w/a", "/w/b"), None)]


def test_numbers_that_go_on_into_a_second_file_say_nothing_about_it() -> None:
    assert claims("cat -n a b") == [ANY]
    assert claims("(cat -n a; cat -n b) | tail -5") == [ANY]
    assert claims("head -40 a | tail -25 | cat -n") == [ANY]


def test_numbers_with_gaps_speak_for_themselves() -> None:
    assert claims("grep -n x f") == [FileLines(("/w/f",), None, ":", gaps=True)]
    assert claims("sed -n '10,20p' f | grep -n x") == [FileLines(("/w/f",), None, ":", -9, gaps=True)]
    assert claims("nl -ba f | grep x") == [FileLines(("/w/f",), None, "\t", gaps=True)]
    assert claims("nl -ba f | tail -3") == [FileLines(("/w/f",), None, "\t")]
    assert claims("tail -20 f | grep -n x") == [ANY]


def test_several_ranges_are_some_of_the_lines() -> None:
    assert claims("sed -n '1,3p;8,9p' f") == [some("f")]
    assert claims("sed -n '1,300p;2,299p' f") == [some("f")]


def test_a_filter_that_selects_nothing_prints_nothing() -> None:
    assert claims("sed -n '1,5p' f | sed -n '9,12p'") == []
    assert claims("head -0 f") == []


def test_text_that_may_not_be_printed_is_no_landmark() -> None:
    both = [lines("f"), Literal("done\n")]
    possible = [lines("f"), ANY]
    assert claims("cat f && echo done") == both
    assert claims("cat f; echo done") == both
    assert claims("(cat f && echo done)") == both
    assert claims("cat f || echo done") == possible
    assert claims("cat f && echo done || true") == both
    assert claims("if [ x ]; then cat f; echo done; fi") == possible
    assert claims("if [ x ]; then true; else cat f; echo done; fi") == possible


def test_neighbouring_texts_are_one() -> None:
    assert claims("cat a; echo; echo '--- b ---'; cat b") == [lines("a"), Literal("\n--- b ---\n"), lines("b")]


def test_a_loop_over_words_is_unrolled_up_to_a_limit() -> None:
    assert claims("for f in a b; do echo $f; cat $f; done") == [
        Literal("a\n"),
        lines("a"),
        Literal("b\n"),
        lines("b"),
    ]
    many = " ".join(f"f{n}" for n in range(51))
    assert claims(f"for f in {many}; do echo $f; cat $f; done") == [ANY]
    assert claims("for f in $(ls); do cat $f; done") == [ANY]


def test_the_range_of_a_script_made_at_run_time_is_unknown() -> None:
    assert claims('sed -n "$A,${B}p" f') == [some("f")]


@pytest.mark.parametrize("command", ["sudo cat f", "timeout 5 cat f", "/bin/cat f", "eval cat f", "! cat f"])
def test_a_command_in_a_wrapper_is_not_read(command: str) -> None:
    """In 41,410 recorded calls, reading wrappers saved less than 0.02 % of the output."""
    assert claims(command) == [ANY]


def test_another_program_of_the_same_name_is_not_trusted() -> None:
    assert claims("./cat f") == [ANY]
    assert claims("tools/sed -n 1,5p f") == [ANY]


@pytest.mark.parametrize(
    "command",
    ["awk 'NR <= 30' f", "python3 -c \"print(''.join(open('f').readlines()[:30]), end='')\"", "less f | head -n 30"],
)
def test_a_program_that_is_not_understood_is_shown_in_full(command: str) -> None:
    lines = [f"line number {n} of a file that was shown before\n" for n in range(40)]
    session = Session("/w")
    session.observe("cat f", "".join(lines))
    assert session.observe("head -n 30 f", "".join(lines[:30])).reason is Reason.COVERED
    reply = session.observe(command, "".join(lines[:30]))
    assert (reply.outcome, reply.text) == (Outcome.FULL, "".join(lines[:30]))


def test_where_the_end_is_cut_off_the_last_line_is_not_the_end_of_the_file() -> None:
    assert claims("head -c 100 f") == [some("f")]
    assert claims("sed '$d' f") == [some("f")]


def test_a_program_that_only_writes_prints_nothing() -> None:
    assert claims("cat f; cp a b") == [lines("f")]


def test_a_command_that_is_refused_says_so() -> None:
    assert read_command("cat 'unterminated", "/w") == UNPARSED
    assert read_command("", "/w") is OPAQUE


def test_a_reading_is_remembered() -> None:
    assert read_command("cat remembered", "/w") is read_command("cat remembered", "/w")


WORDS = """cat head tail sed nl awk grep tee cp mv rm git show python3 bash cd echo printf for in do done if then fi
-c -n -i -e | || && ; & > >> < << <<< 2>&1 ( ) { } $ $X ${X} $(ls) ` ' " \\ * ? ~ - -- 1,5p $p NR==1
EOF f a/b D:\\x = !"""


@given(words=st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=14), joined=st.sampled_from([" ", ""]))
def test_no_command_raises(words: list[str], joined: str) -> None:
    reading = read_command(joined.join(words), "/w")
    for write in reading.writes:
        assert 0 <= write.before <= len(reading.claims)
    for claim in reading.claims:
        assert not isinstance(claim, Literal) or claim.text.endswith("\n")
        assert not isinstance(claim, FileLines) or all(key.startswith(("/", "~", "git:")) for key in claim.keys)


def test_deep_nesting_is_no_error() -> None:
    assert claims("( " * 3000 + "cat f" + " )" * 3000) in ([ANY], [lines("f")])


def test_what_is_above_a_home_directory_is_not_known() -> None:
    assert canonical_path("~/..", "/w") == "~/.."
    assert canonical_path("~/../w/a", "/w") == canonical_path("../w/a", "~") == "~/../w/a"
    assert canonical_path("~me//a/./b", "/w") == "~me/a/b"
    assert canonical_path("~me//a/./b/..", "/w") == "~me/a/b/.."


@example(path="~/..")
@given(path=st.text(st.sampled_from("ab./~ *\\:D"), max_size=12))
def test_a_canonical_path_stays_as_it_is(path: str) -> None:
    once = canonical_path(path, "/w")
    assert canonical_path(once, "/elsewhere") == once


@pytest.mark.parametrize(
    "command",
    [
        "set -x; cat f",
        "set -eux; cat f",
        "set -o xtrace; cat f",
        "set -v; cat f",
        "bash -xc 'cat f'",
        "(set -x; cat f)",
    ],
)
def test_lines_of_a_trace_are_not_the_files(command: str) -> None:
    assert claims(command) == [ANY, lines("f"), ANY]
    session = Session("/w")
    text = "".join(f"line {n} of a file that has thirty of them\n" for n in range(1, 31))
    for _ in range(2):
        session.observe(command, f"+ cat f\n{text}", exit_code=0)
    assert not session.view.covers("/w/f", 31, 31)


def test_a_trace_ends_with_its_shell() -> None:
    assert claims("(set -x; cat f); cat g") == [ANY, lines("f"), ANY, lines("g")]
    assert claims("set -eu; cat f") == [lines("f")]
