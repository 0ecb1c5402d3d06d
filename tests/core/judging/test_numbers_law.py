"""The law of separators: a wrong one never makes an omission, and every number that a marker names is true.

The tests know of each printed line which line of which file it is, whatever the tool writes around it. An omitted line
must stand at a source that the marker names as the same line of text, or with the same characters after its number.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from readcache import Omitted, Policy, Reply, Session, Shown
from readcache.core.judging.numbers import Proof
from readcache.core.model.spec.world import World
from readcache.core.model.text import NUMBER

FORMS = (
    "{n}: ",
    "{n}:",
    "{n:05d}| ",
    "{n:3d}|",
    "{n:4d} | ",
    "{n}. ",
    "L{n}: ",
    "[{n}] ",
    "[{n}]",
    "line {n}: ",
    "{n}) ",
    "{n}\t",
    "{n:6d}→",
)
NAMES: tuple[bool | str, ...] = (True, ": ", ":", "| ", "|", " | ", ". ", "[{n}] ", "L{n}: ", "\t", "?")
WORDS = ("return the value", "print(total)", "x = compute(1)", "}", "", " ", "# 12: a note")
FILES = ("one", "one", "copy", "copy", "two")
_THERE = re.compile(r" as (?:(\S+) )?lines? (\d+)(?:-(\d+))?(?= in |;|\])")


@dataclass(frozen=True)
class Line:
    """A printed line: what was printed, and what it is."""

    printed: str
    path: str
    number: int
    text: str
    rest: str  # what is printed after the number


@dataclass
class Reader:
    """What a reader was shown, kept by the test."""

    session: Session
    world: World = field(default_factory=World)
    seen: dict[str, list[Line]] = field(default_factory=dict)
    omitted: int = 0

    def take(self, reply: Reply, lines: list[Line], request: str) -> None:
        """Check a reply to an output of these lines."""
        output = "".join(line.printed + "\n" for line in lines)
        assert not [found for found in self.world.answered("main", reply, output, request=request) if found.fault]
        at, left = 0, list[Line]()
        for segment in reply.segments:
            if isinstance(segment, Shown):
                count = segment.text.count("\n")
                left += lines[at : at + count]
            else:
                count = segment.end - segment.start + 1
                self.check(segment, lines[at : at + count])
                self.omitted += count
            at += count
        assert at == len(lines)
        self.seen[reply.call_id] = left
        for marker in self.session.markers_in(reply.text):
            self.check_there(marker)

    def check(self, gap: Omitted, lines: list[Line]) -> None:
        """Each omitted line is the line of the file that the reply says, and is one at a source."""
        for number, line in enumerate(lines, gap.start):
            if gap.path is not None:
                assert (gap.path, number) == (line.path, line.number)
            there = [other for source in gap.sources for other in self.seen[source]]
            assert any(line.text == other.text or line.rest == other.rest for other in there), (line, gap)

    def check_there(self, marker: str) -> None:
        """The numbers that a marker gives for a source are numbers of lines that some source shows."""
        shown = {other.number for lines in self.seen.values() for other in lines}
        for _, first, last in _THERE.findall(marker):
            if "of that output" not in marker:
                assert shown.issuperset(range(int(first), int(last or first) + 1))


def contents(rng: random.Random) -> list[str]:
    """Lines of a file, many of them alike but for their indentation."""
    deeper, unique = rng.choice((0, 1, 1, 2)), rng.random() < 0.8
    words = rng.choice((WORDS, WORDS[:3]))
    return [" " * (rng.randrange(4) + deeper) + rng.choice(words) + f" #{n}" * unique for n in range(30)]


def change(rng: random.Random, lines: list[str], call: int) -> None:
    """Change lines where nobody sees it."""
    for n in rng.sample(range(30), rng.randrange(10)):
        lines[n] = f"{' ' * rng.randrange(4)}new words {call} {n}"


@given(st.integers(0, 2**40))
def test_a_wrong_separator_never_makes_an_omission(seed: int) -> None:
    event(f"omitted: {omitted_in(seed) > 0}")


def test_the_law_finds_separators_that_nothing_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proof, "allows", lambda *_: True)
    with pytest.raises(AssertionError):
        sum(map(omitted_in, range(1000)))


def omitted_in(seed: int) -> int:
    """Check a conversation; return how many lines were omitted in it.

    `copy` is `one` with a blank more or less before each line. Tools differ from call to call, and so does what the
    host says of them."""
    rng = random.Random(seed)
    one, moved = contents(rng), rng.randrange(-1, 3)
    shifted = [line.removeprefix(" ") if moved < 0 else " " * moved + line for line in one]
    disk = {"one": one, "two": contents(rng), "copy": shifted}
    policy = replace(Policy.named(rng.choice(("default", "delta", "max"))), min_chars=0, min_worth=0)
    reader = Reader(Session("/w", policy=policy))
    forms = (*rng.choice((("raw",), ("raw", "cat -n"))), *rng.sample(FORMS, rng.choice((1, 1, 2))))
    for k in range(rng.randrange(2, 10)):
        path, form, first = rng.choice(FILES), rng.choice(forms), rng.choice((1, 1, 5, 12))
        last = rng.randrange(first + 4, 31)
        if rng.random() < 0.3:
            change(rng, disk[path], k)
        as_shown = {"raw": "", "cat -n": "{n:6d}\t"}.get(form, form)
        lines = [_line(as_shown, f"/w/{path}", n, text) for n, text in enumerate(disk[path][first - 1 : last], first)]
        output = "".join(line.printed + "\n" for line in lines)
        request = f"{form} {path} {first} {last}"
        if form in ("raw", "cat -n"):
            command = f"{form.replace('raw', 'cat')} {path} | sed -n {first},{last}p"
            reply = reader.session.observe(command, output, call_id=f"c{k}")
        else:
            right = re.sub(r"\{n[^}]*\}", NUMBER, form).removeprefix(NUMBER)
            twin = right[:-1] if right.endswith(" ") else f"{right} "  # wrong by a blank
            says = rng.choice((rng.choice(NAMES), right, twin, twin))
            reply = reader.session.observe_read(path, output, start=first, end=last, numbered=says, call_id=f"c{k}")
        reader.take(reply, lines, request)
    return reader.omitted


def _line(form: str, path: str, number: int, text: str) -> Line:
    before = form.format(n=number)
    return Line(before + text, path, number, text, (before + text).partition(str(number))[2] if form else text)
