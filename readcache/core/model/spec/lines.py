"""Lines as a model reads them: when two lines are the same, and whether a text contains given lines.

Texts are compared by whole lines. The prefix of a line may differ from the prefix at the source. It may be a number, if
the source shows numbers too or the marker names the lines by these numbers. It may be the mark that a diff writes
before the lines that it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Numbers before a line: `cat -n`, Claude Code, `grep -n`, OpenHands, SWE-agent; `grep` with file names; and forms of
# other tools, such as `[12] x`, `L12: x`, `12) x`.
_NUMBER = r"[ \t]*(\d{1,9})(\t|→|: |:| ?\| |\||\. |-)"
_PATH = r"[\d-]*[^\s:\d-][^\s:]*?[:-]"  # takes linear time in a line without blanks
_OTHER = r"[ \t]*(?:(?:[^\W\d_]{1,4} ?|[^\w\s])[ \t]*)?(\d{1,9})( ?[^\w\s] ?)"
_IN_FRONT = (re.compile(_NUMBER), re.compile(_PATH + _NUMBER), re.compile(_OTHER))
_NAMED = re.compile(r"\blines? (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")  # in a marker
_HUNK = re.compile(r"^@@ .* @@", re.MULTILINE)
_IN_A_DIFF = (" ", "+")  # the marks before lines that the file has now


def possible_bodies(line: str) -> Iterator[tuple[str, int | None]]:
    """Yield the ways to read the line, each as (body, number): the whole line without a number, or the text after a
    number."""
    yield line, None
    for found in (pattern.match(line) for pattern in _IN_FRONT):
        if found:
            yield line[found.end() :], int(found[1])
            if found[2].endswith(" "):  # this blank may belong to the line
                yield line[found.end() - 1 :], int(found[1])


def is_same_line(printed: str, there: str) -> bool:
    """Return True for the same line with different prefixes: a number, a path, or at the source a diff's mark."""
    found = {body for body, _ in possible_bodies(there)} | {there[1:] for mark in _IN_A_DIFF if there.startswith(mark)}
    return any(body in found for body, _ in possible_bodies(printed))


@dataclass(slots=True)
class VisibleText:
    """A text that the reader can see, indexed by its lines."""

    text: str
    _joined: str = ""
    # possible body of a line -> its positions, and whether it has a number there
    _positions: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    _at: list[dict[str, bool]] = field(default_factory=list)

    def contains(self, block: str) -> bool:
        """Return True if the text contains the block as consecutive whole lines. The block has a newline at both
        ends."""
        self._joined = self._joined or "\n" + self.text.removesuffix("\n") + "\n"
        return block in self._joined

    def positions(self, body: str) -> Sequence[tuple[int, bool]]:
        """Return the positions of such a line, each as (index, whether the line has a number there)."""
        if not self._at:
            self._fill()
        return self._positions.get(body, ())

    def numbered(self, at: int, body: str) -> bool | None:
        """Return True if the line at this index has this body with a number before it, and False if it has no number.
        Return None if the line is another one."""
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
    """Return the numbers that a marker gives to `count` lines. Return a list of None if it does not name all of them.
    With several sources, each source comes after its numbers."""
    for found in _NAMED.finditer(marker):
        numbers: list[int] = []
        for span in found[1].split(", "):
            first, _, last = span.partition("-")
            numbers += range(int(first), int(last or first) + 1)
            if len(numbers) == count:
                return numbers
    return [None] * count


def first_missing(lines: Sequence[str], sources: Sequence[VisibleText], marker: str) -> int | None:
    """Return the index of the first line that the sources do not contain; None if they contain all lines. The lines may
    be spread over several runs. `marker` may name their numbers."""
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
    """An omitted line, and its number if the marker names the number."""

    def __init__(self, line: str, named: int | None) -> None:
        # (body, True if its source may show it without a number)
        self.bodies = [(body, number is None or number == named) for body, number in possible_bodies(line)]


def _match_length(wanted: list[_Wanted], at: int, source: VisibleText) -> int:
    """Return the largest number of lines from index `at` that the source contains as one run."""
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
