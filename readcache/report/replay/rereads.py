"""The lines of the same file that a reader was shown before, by any request. This bounds what any cache of file lines
could save, and measures how much of the lines re-read after a compaction a restore plan would have held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from readcache import RestorePlan

SHORTEST = 4  # characters of a line, blanks aside, that tells anything: `}` alone is not a re-read
RUN = 3  # such lines in a row: fewer may stand in a file twice
WATCHED = 20  # calls after a compaction in which a re-read counts as one that it caused


class ShownLines(NamedTuple):
    """Lines of one file that a call showed, without numbers in front."""

    key: str
    lines: tuple[str, ...]
    chars: int  # with all that stands in front of them


class Rereads:
    """One reader's known lines, call by call."""

    def __init__(self) -> None:
        self._calls: dict[str, list[ShownLines]] = {}
        self._known: dict[str, set[str]] = {}
        self._lost: dict[str, set[str]] = {}
        self._restorable: set[str] = set()
        self._watch = 0

    def add(self, call_id: str, shown: list[ShownLines]) -> int:
        """A call showed these: how many of their characters were known. They are known from now on."""
        red = sum(self._known_chars(part) for part in shown)
        for part in shown:
            self._known.setdefault(part.key, set()).update(part.lines)
        if shown:
            self._calls[call_id] = shown
        return red

    def trim(self, kept: frozenset[str], plan: RestorePlan | None) -> None:
        """Only these calls stay. `plan`: what would have been put back, where a compaction took the others."""
        before = self._known
        self._calls = {name: shown for name, shown in self._calls.items() if name in kept}
        self._known = {}
        for part in (part for shown in self._calls.values() for part in shown):
            self._known.setdefault(part.key, set()).update(part.lines)
        if plan is not None:
            self._lost = {key: lines - self._known.get(key, set()) for key, lines in before.items()}
            self._restorable = {line for item in plan.items for line in item.text.split("\n")}
            self._watch = WATCHED

    def after_removal(self, shown: Iterable[ShownLines]) -> tuple[int, int]:
        """(characters that were lost by the last compaction and are shown again by this call, those of them that the
        plan had). Each line counts once; to be asked for every call."""
        if not self._watch:
            return 0, 0
        self._watch -= 1
        again = [line for part in shown for line in self._again(part)]
        return sum(len(line) + 1 for line in again), sum(len(line) + 1 for line in again if line in self._restorable)

    def _again(self, part: ShownLines) -> list[str]:
        lost = self._lost.get(part.key, set())
        found = [line for line in part.lines if line in lost and not _is_trivial(line)]
        lost.difference_update(part.lines)
        return found

    def _known_chars(self, part: ShownLines) -> int:
        """Of runs of known lines that are long enough, or all there is."""
        known, lines, total = self._known.get(part.key, set()), part.lines, 0
        for run in _runs(lines, known):
            if sum(not _is_trivial(lines[i]) for i in run) >= RUN or len(run) == len(lines):
                total += sum(len(lines[i]) + 1 for i in run)
        return total


def _runs(lines: tuple[str, ...], known: set[str]) -> Iterator[list[int]]:
    run: list[int] = []
    for i, line in enumerate(lines):
        if line in known or (run and _is_trivial(line)):
            run.append(i)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _is_trivial(line: str) -> bool:
    return len(line.strip()) < SHORTEST
