"""The main oracle of the readers: claims, laid over files that we know, give what bash and its tools really print."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from readcache.core.model.claims import Anything, Claim, FileLines, Literal
from readcache.core.model.text import split_lines, split_number
from readcache.core.shell.read import read_command

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

# Known to the line. {a}..{d} are rising line numbers; f and g are files.
EXACT = [
    "cat f",
    "cat -n f",
    "cat -- f",
    "cat ./f",
    "cat 'f'",
    "cat f | cat | cat -",
    "cat f | cat -n",
    "cat -n f | sed -n '{a},{b}p'",
    "nl -ba f",
    "nl -b a -w2 f",
    "nl -ba -s': ' f",
    "nl -ba -v{a} f",
    "nl -ba -n rz f",
    "nl -ba f | sed -n '{a},{b}p'",
    "sed -n '{a},{b}p' f | nl -ba -v{a}",
    "sed -n '{a},{b}p' f | nl -ba -v1 | sed -n '2,3p'",
    "head f",
    "head -n {a} f",
    "head -{a} f",
    "head -n{a} f",
    "head --lines={a} f",
    "head --lines {a} f",
    "head -n 0 f",
    "tail -n +{a} f",
    "tail +{a} f",
    "tail -n +{a} f | head -n {b}",
    "head -n {b} f | tail -n +{a}",
    "cat f | tail -n +{a} | head -{b}",
    "sed -n '{a},{b}p' f",
    "sed -n {a},{b}p f",
    "sed -n '{a}p' f",
    "sed -n '{a},$p' f",
    "sed -n '{b},{a}p' f",
    "sed -n '{a},{b}{{p}}' f",
    "sed -ne '{a},{b}p' f",
    "sed --quiet '{a},{b}p' f",
    "sed -E -n '{a},{b}p' f",
    "sed -n '{a},{b}p' f | sed -n '{c},{d}p'",
    "cat f | sed -n '{a},{b}p'",
    "sed -n '{a},{b}p' f | cat -n",
    "cat f g",
    "cat g f g",
    "cat f; cat g",
    "cat f && cat g",
    "{{ cat f; sed -n '{a},{b}p' g; }}",
    "(cat g; head -n {a} f)",
    "echo '--- f ---'; sed -n '{a},{b}p' f; echo; cat g",
    "cat f && echo and && cat g",
    'F=f; cat $F; cat "${{F}}"',
    'for x in f g; do echo "== $x"; head -n {a} $x; done',
    "cd d && cat h && cd .. && cat f",
    "(cd d; cat h); cat f",
    "cd d; cat ../f",
    'cat "$PWD/f"',
    "cat f >out; cat g",
    "{{ cat f; echo hidden; }} >out; cat g",
    "cat f > /dev/null; cat g 2>/dev/null",
    "cat f 2>&1",
    "cat f 1>&2",
    "cat f | tee out | sed -n '{a},{b}p'",
    "cat <<'EOF'\n$x `y`\n\\z\nEOF\ncat f",
    "cat <<EOF\nplain\nEOF",
    "cat <<-EOF\n\ttabbed\nplain\n\tEOF\ncat f",
    "A=1 cat f; \\cat f",
    "bash -c 'cd d; cat h'; cat f",
    "sh -c \"sed -n '{a},{b}p' f\"",
    "[ -f f ] && cat f",
    "test -f nope; cat f",
    "if [ -f f ]; then sed -n '{a},{b}p' f; fi",
    "true && cat f || false",
    "export X=1; set -e; mkdir e; cat f",
    "cp f out; rm out; cat f",
    "wc -l f >/dev/null; cat f",
    "# a comment\ncat f # another",
    "cat \\\n  f",
]

# Known to the line when the file is at least {b} lines long.
EXACT_WHEN_LONG = [
    "head -n {b} f | tail -n {a}",
    "cat f | head -{b} | tail -{a}",
    "sed -n '{a},{b}p' f | tail -n 2",
    "sed -n '{a},{b}p' f | tail -1",
]

# Lines of f (numbered where the claim says so); which is not known, or not where they end.
SOME = [
    "tail -n {a} f",
    "tail -{a} f",
    "cat f | tail -n {a}",
    "nl -ba f | tail -n {a}",
    "cat -n f | head -n {b} | tail -n {a}",
    "sed -n '/e/,/o/p' f",
    "sed -n '{a},+3p' f",
    "sed -n '{a},{b}p;{c},{d}p' f",
    "sed -n -e '{a}p' -e '{b}p' f",
    "nl -ba f | sed -n '{a},{b}p;{c},{d}p'",
    "sed -n '/e/p' f",
    "sed '/e/d' f",
    "sed -n '$p' f",
    "sed '$d' f",
    "sed p f",
    "sed '' f",
    "sed '{a},{b}!d' f",
    "sed '{a}d;{c},{d}d' f",
    "sed {b}q f",
    "sed -n '{a},{b}!p' f",
    "sed -n '{a},{b} p; {d} q' f",
    "sed -n '{a},{d}p;{b},{c}p' f",
    "sed -n '{a},{b}p' f | sed -n '$p'",
    "sed -n '{a},{b}p;{c},{d}p' f | sed 2,3d",
    "sed -n '{a}~3p' f",
    "nl -ba f | sed -n '/e/p'",
    "cat -n f | grep e",
    "grep e f",
    "grep -n e f",
    "grep -n -i 'e\\|o' f",
    "grep -n -B1 e f",
    "grep -vn e f",
    "sed -n '{a},{b}p' f | grep -n e",
    "cat f | grep -n e | head -n 2",
    'a={a}; sed -n "$((a)),$((a+2))p" f',
    'sed -n "$(echo {a}),{b}p" f',
]

PAGES = ("\\:", "\\:\\:", "\\:\\:\\:")  # nl takes such a line for the border of a page's part, and does not print it
TEXT = st.text(st.sampled_from("eo ax19:\t-|é→\r\x0c\\$"), max_size=8).filter(lambda line: line not in PAGES)
FILE = st.tuples(st.lists(TEXT, max_size=14), st.booleans())
NUMBERS = st.lists(st.integers(1, 16), min_size=4, max_size=4)


@dataclass(frozen=True)
class Ran:
    """A command that really ran in a directory with the files f, g and d/h."""

    claims: tuple[Claim, ...]
    output: list[str]
    files: dict[str, list[str]]


def run(command: str, f: tuple[list[str], bool], g: list[str]) -> Ran:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        (root / "d").mkdir()
        ended = "".join(line + "\n" for line in f[0])
        contents = {
            "f": ended if f[1] else ended[:-1],
            "g": "".join(line + "\n" for line in g),
            "d/h": "below\n" + ended,
        }
        for path, content in contents.items():
            (root / path).write_bytes(content.encode())
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        reading = read_command(command, str(root))
    assert reading.parsed
    lines = {f"{root}/{path}": split_lines(content) for path, content in contents.items()}
    return Ran(reading.claims, split_lines(done.stdout.decode()), lines)


def laid(claim: Claim, files: dict[str, list[str]]) -> list[tuple[int | None, str | None, str]]:
    """What a claim foresees, as (number, separator, text) lines."""
    if isinstance(claim, Literal):
        return [(None, None, line) for line in split_lines(claim.text)]
    assert isinstance(claim, FileLines), claim
    assert claim.lines is not None, claim
    (key,) = claim.keys
    lines, (start, end) = files[key], claim.lines
    return [
        (None if claim.sep is None else n + claim.shift, claim.sep, lines[n - 1])
        for n in range(start, (len(lines) if end is None else min(end, len(lines))) + 1)
    ]


def assert_exact(ran: Ran) -> None:
    expected = [line for claim in ran.claims for line in laid(claim, ran.files)]
    assert len(ran.output) == len(expected), (ran.claims, ran.output)
    for shown, (number, sep, text) in zip(ran.output, expected, strict=True):
        if sep is None:
            assert shown == text, ran.claims
        else:
            assert split_number(shown, sep) == (number, text), ran.claims


def fill(command: str, numbers: list[int]) -> str:
    a, b, c, d = sorted(numbers)
    return command.format(a=a, b=b, c=c, d=d)


@pytest.mark.parametrize("command", EXACT)
def test_claims_foresee_the_output_to_the_line(command: str) -> None:
    lines = ["def one():", "", "    return 1", "", "", "class Two:", "    pass", "", "end", "x", "y", "z"]
    assert_exact(run(fill(command, [2, 4, 6, 9]), (lines, True), ["g one", "", "g three"]))


@given(command=st.sampled_from(EXACT), f=FILE, g=st.lists(TEXT, max_size=5), numbers=NUMBERS)
@example(command="cat -n f | sed -n '{a},{b}p'", f=([""], True), g=[], numbers=[1, 1, 1, 1])
@example(command="sed -n '{a},$p' f", f=(["x"], False), g=[], numbers=[1, 1, 1, 1])
def test_claims_foresee_the_output_of_any_file(
    command: str, f: tuple[list[str], bool], g: list[str], numbers: list[int]
) -> None:
    if " g" in command or ";" in command or "d/h" in command:  # an unended file would share a line with the next
        f = (f[0], True)
    assert_exact(run(fill(command, numbers), f, g))


@given(command=st.sampled_from(EXACT_WHEN_LONG), lines=st.lists(TEXT, min_size=16, max_size=20), numbers=NUMBERS)
def test_the_end_of_a_start_is_known_for_a_long_file(command: str, lines: list[str], numbers: list[int]) -> None:
    assert_exact(run(fill(command, numbers), (lines, True), []))


@given(command=st.sampled_from(SOME), f=FILE, numbers=NUMBERS)
def test_unknown_lines_are_lines_of_the_file(command: str, f: tuple[list[str], bool], numbers: list[int]) -> None:
    ran = run(fill(command, numbers), (f[0], True), [])
    (claim,) = ran.claims
    assert isinstance(claim, FileLines)
    (key,) = claim.keys
    lines = ran.files[key]
    if claim.lines is not None:
        foreseen = [text for _, _, text in laid(claim, ran.files)]
        assert foreseen[: len(ran.output)] == ran.output
        return
    for shown in ran.output:
        if claim.sep is None:
            assert shown in lines
        elif claim.gaps and shown != "--":
            numbered = split_number(shown, claim.sep) or split_number(shown, "-")
            assert numbered is not None
            assert lines[numbered[0] - claim.shift - 1] == numbered[1]


@pytest.mark.parametrize(
    "command",
    ["cat nope", "cat nope f", "head -n 3 nope", "cat nope 2>/dev/null || cat f", "cd nope && cat f", "exit 3; echo x"],
)
def test_what_fails_still_gives_claims(command: str) -> None:
    ran = run(command, (["a"], True), [])
    assert not any(isinstance(claim, Literal) for claim in ran.claims)
    assert all(isinstance(claim, FileLines | Anything) for claim in ran.claims)
