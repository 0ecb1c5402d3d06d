"""Lines as a model reads them: when two are the same line, and whether a text has a stretch of them.

Texts are compared by whole lines. What stands in front of a line may differ from the source: a number, if the source
shows numbers too or the marker names the lines by these numbers; what a diff puts in front of lines that it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Numbers in front of a line: `cat -n`, Claude Code, `grep -n`, OpenHands, SWE-agent; `grep` with file names; and what
# other tools write, such as `[12] x`, `L12: x`, `12) x`.
_NUMBER = r"[ \t]*(\d{1,9})(\t|→|: |:| ?\| |\||\. |-)"
_PATH = r"[\d-]*[^\s:\d-][^\s:]*?[:-]"  # takes linear time in a line without blanks
_OTHER = r"[ \t]*(?:(?:[^\W\d_]{1,4} ?|[^\w\s])[ \t]*)?(\d{1,9})( ?[^\w\s] ?)"
_IN_FRONT = (re.compile(_NUMBER), re.compile(_PATH + _NUMBER), re.compile(_OTHER))
_NAMED = re.compile(r"\blines? (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")  # in a marker
_HUNK = re.compile(r"^@@ .* @@", re.MULTILINE)
_IN_A_DIFF = (" ", "+")  # in front of lines that the file has now


def possible_bodies(line: str) -> Iterator[tuple[str, int | None]]:
    """The ways to read the line: as it is, or as a number and the text behind it."""
    yield line, None
    for found in (pattern.match(line) for pattern in _IN_FRONT):
        if found:
            yield line[found.end() :], int(found[1])
            if found[2].endswith(" "):  # which may belong to the line
                yield line[found.end() - 1 :], int(found[1])


def is_same_line(printed: str, there: str) -> bool:
    """True for the same line with different prefixes: a number, a path, or at the source a diff's mark."""
    found = {body for body, _ in possible_bodies(there)} | {there[1:] for mark in _IN_A_DIFF if there.startswith(mark)}
    return any(body in found for body, _ in possible_bodies(printed))


@dataclass(slots=True)
class VisibleText:
    """A text that the reader can see, by its lines."""

    text: str
    _joined: str = ""
    # what a line may be -> where, and whether it has a number there
    _positions: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    _at: list[dict[str, bool]] = field(default_factory=list)

    def contains(self, block: str) -> bool:
        """True if the block of whole lines, with a newline at both ends, stands there in one piece."""
        self._joined = self._joined or "\n" + self.text.removesuffix("\n") + "\n"
        return block in self._joined

    def positions(self, body: str) -> Sequence[tuple[int, bool]]:
        """(where such a line stands, whether it has a number in front there)."""
        if not self._at:
            self._fill()
        return self._positions.get(body, ())

    def numbered(self, at: int, body: str) -> bool | None:
        """Whether that line stands there with a number in front. None: there is another one."""
        return self._at[at].get(body) if at < len(self._at) else None

    def _fill(self) -> None:
        is_diff = _HUNK.search(self.text) is not None
        for at, line in enumerate(self.text.removesuffix("\n").split("\n")):
            found = {body: number is not None for body, number in possible_bodies(line)}
            if is_diff and line[:1] in _IN_A_DIFF:
                found.setdefault(line[1:], False)
            self._at.append(found)
            for body, numbered in found.items():
                self._positions.setdefault(body, []).append((at, numbered))


def _numbers_named(marker: str, count: int) -> Sequence[int | None]:
    """The numbers that a marker gives to so many lines; none if it does not name them all. With several sources, each
    source follows its numbers."""
    for found in _NAMED.finditer(marker):
        numbers: list[int] = []
        for span in found[1].split(", "):
            first, _, last = span.partition("-")
            numbers += range(int(first), int(last or first) + 1)
            if len(numbers) == count:
                return numbers
    return [None] * count


def first_missing(lines: Sequence[str], sources: Sequence[VisibleText], marker: str) -> int | None:
    """Which of the lines (from 0) does not stand in the sources; None when all do, in stretches that together are all
    of them. `marker` may name their numbers."""
    block = "\n".join(["", *lines, ""])
    if any(source.contains(block) for source in sources):
        return None
    wanted = [_Wanted(*pair) for pair in zip(lines, _numbers_named(marker, len(lines)), strict=True)]
    at = 0
    while at < len(wanted):
        longest = max((_match_length(wanted, at, source) for source in sources), default=0)
        if not longest:
            return at
        at += longest
    return None


class _Wanted:
    """A line that was left out, and its number where the marker names that."""

    def __init__(self, line: str, named: int | None) -> None:
        # (body, True if it may stand there without a number)
        self.bodies = [(body, number is None or number == named) for body, number in possible_bodies(line)]


def _match_length(wanted: list[_Wanted], at: int, source: VisibleText) -> int:
    """How many of the lines from `at` on stand in the source in one piece, at most."""
    longest = 0
    for body, may_be_bare in wanted[at].bodies:
        for start, numbered in source.positions(body):
            if not numbered and not may_be_bare:
                continue
            length = 1
            while at + length < len(wanted) and _is_there(wanted[at + length], source, start + length):
                length += 1
            longest = max(longest, length)
            if at + longest == len(wanted):
                return longest
    return longest


def _is_there(line: _Wanted, source: VisibleText, at: int) -> bool:
    return any(
        numbered is not None and (numbered or may_be_bare)
        for body, may_be_bare in line.bodies
        for numbered in (source.numbered(at, body),)
    )
