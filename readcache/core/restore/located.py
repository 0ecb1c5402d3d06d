"""Locates the lines of a result in files as they are now, so that a plan restores these lines and not old ones.

Each line that a file has only once is an anchor. An anchor and the equal lines around it are a run. Lines between two
runs of one file are old lines of it, and the file's lines between these runs are restored instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from readcache.core.model.text import is_blank

# Lines that are not blank. A shorter run proves nothing, unless it is a whole file or all that was printed.
SHORTEST_RUN = 3
# Lines that an edit may have added between two runs.
MOST_ADDED = 20


class CurrentFile:
    """The lines of a file by number: as on disk, or as last seen if it is not known to have changed."""

    def __init__(self, path: str, lines: Mapping[int, str], last: int | None, *, is_on_disk: bool) -> None:
        self.path, self.lines, self.is_on_disk = path, lines, is_on_disk
        self._last = last  # number of the last line, if known

    def is_whole(self, numbers: Collection[int]) -> bool:
        """Return True if these are all of its lines, or the first and the last one."""
        return self._last is not None and (not self._last or {1, self._last} <= set(numbers))

    @cached_property
    def anchors(self) -> Mapping[str, int]:
        """The lines that occur once and are not blank, with their numbers."""
        times = Counter(self.lines.values())
        return {line: n for n, line in self.lines.items() if times[line] == 1 and not is_blank(line)}

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(self.lines.values())

    def contains(self, line: str) -> bool:
        """Return True if this is one of its lines."""
        return line in self._all

    def has(self, lines: Sequence[str], first: int) -> bool:
        """Return True if the file has these lines from the number `first` on."""
        return all(self.lines.get(n) == line for n, line in enumerate(lines, first))


@dataclass(slots=True)
class Located:
    """The lines that were found: their `numbers` now, by path. By index of a printed line: `path_of` has its file, and
    `old_of` the file that probably had this line before it changed."""

    numbers: dict[str, set[int]] = field(default_factory=dict)
    path_of: dict[int, str] = field(default_factory=dict)
    old_of: dict[int, str] = field(default_factory=dict)

    def add(self, path: str, numbers: Iterable[int], indexes: Iterable[int]) -> None:
        """Add lines of a file."""
        self.numbers.setdefault(path, set()).update(numbers)
        self.path_of.update(dict.fromkeys(indexes, path))

    def add_instead(self, path: str, numbers: Iterable[int], indexes: Iterable[int]) -> None:
        """Add lines of a file that replace old lines."""
        self.numbers.setdefault(path, set()).update(numbers)
        self.old_of.update(dict.fromkeys(indexes, path))


class _FoundLine(NamedTuple):
    """The line `at` of the text, which is the line `number` of a file."""

    at: int
    file: CurrentFile
    number: int


def locate_lines(
    lines: Sequence[str], files: Sequence[CurrentFile], changed: Collection[str] = (), most_old: int = MOST_ADDED
) -> Located:
    """Return where lines of some of these files are now. Their numbers and the borders between the files are unknown.
    `changed`: the files that are known to have changed since the lines were printed. `most_old`: the most lines
    before the first run of such a file, or after its last one, that count as old lines of it."""
    lines_there = _found_lines(lines, files)
    found = Located()
    for line in lines_there:
        found.add(line.file.path, [line.number], [line.at])
    for above, below in pairwise(lines_there):
        old, added = range(above.at + 1, below.at), range(above.number + 1, below.number)
        is_edit = bool(added) or above.file.path in changed
        if above.file is below.file and above.number < below.number and len(added) <= len(old) + MOST_ADDED and is_edit:
            found.add_instead(above.file.path, added, old)
    _add_edges(found, lines_there, len(lines), changed, most_old)
    return found


def locate_numbered(lines: Sequence[str], first: int, file: CurrentFile) -> Located:
    """Return where the lines of a file are now, which had the numbers from `first` on. If none of them is found, or the
    file is not on this disk, they have their old numbers."""
    found = Located()
    if file.is_on_disk and not file.has(lines, first):
        found = locate_lines(lines, [file], [file.path], len(lines))
    if not found.numbers:
        found.add(file.path, range(first, first + len(lines)), ())
    found.add(file.path, (), range(len(lines)))
    return found


def _found_lines(lines: Sequence[str], files: Sequence[CurrentFile]) -> list[_FoundLine]:
    """Return the lines that were found, in order. If two files have a line, it belongs to the longer run."""
    runs = [(file, *run) for file in files for run in _runs(lines, file)]
    lines_there: dict[int, _FoundLine] = {}
    for file, low, high, number in sorted(runs, key=lambda run: run[1] - run[2]):
        for at in range(low, high):
            lines_there.setdefault(at, _FoundLine(at, file, number + at - low))
    return [lines_there[at] for at in sorted(lines_there)]


def _runs(lines: Sequence[str], file: CurrentFile) -> Iterator[tuple[int, int, int]]:
    """Yield (low, high, number): lines low to high - 1 are the file's lines from `number` on."""
    at = done = 0
    while at < len(lines):
        number = file.anchors.get(lines[at])
        if number is None:
            at += 1
            continue
        low, high = at, at + 1
        while low > done and file.lines.get(number - 1) == lines[low - 1]:
            low, number = low - 1, number - 1
        while high < len(lines) and file.lines.get(number + high - low) == lines[high]:
            high += 1
        is_all = high - low in (len(lines), len(file.lines))
        if is_all or sum(not is_blank(line) for line in lines[low:high]) >= SHORTEST_RUN:
            yield low, high, number
        at = done = high


def _add_edges(
    found: Located, lines_there: Sequence[_FoundLine], count: int, changed: Collection[str], most_old: int
) -> None:
    """Add lines before a changed file's first run, or after its last one, for lines that were printed there."""
    for above, below in pairwise([None, *lines_there, None]):
        low, high = above.at + 1 if above else 0, below.at if below else count
        if not 0 < high - low <= most_old or (above and below and above.file is below.file):
            continue
        if above and above.file.path in changed:
            after = range(above.number + 1, above.number + 1 + high - low)
            _add_if_any(found, above.file, after, range(low, high))
        if below and below.file.path in changed:
            _add_if_any(found, below.file, range(below.number - (high - low), below.number), range(low, high))


def _add_if_any(found: Located, file: CurrentFile, numbers: Iterable[int], indexes: Iterable[int]) -> None:
    known = [n for n in numbers if n in file.lines]
    if known:
        found.add_instead(file.path, known, indexes)
