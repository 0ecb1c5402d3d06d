"""Find outdated reads: a later read shows their lines after a change. Find where pruning them pays for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from readcache.context.duplicates import file_lines
from readcache.core.model.events import MappedSpan
from readcache.core.model.policy import Prices
from readcache.core.model.text import split_lines


class LaterReads:
    """The file lines that later reads show. Add results from the last to the first, because the newest line counts."""

    def __init__(self) -> None:
        self.complete_files: set[str] = set()  # files that one of the reads shows completely
        self._tops: dict[str, int] = {}  # file -> how many of its first lines one of the reads shows
        self._lines: dict[tuple[str, int], str] = {}
        self._texts: set[tuple[str, str]] = set()

    def add(self, text: str, source_map: Sequence[MappedSpan]) -> None:
        """Add a result. `source_map`: the file lines in its text."""
        for _, (path, number, line), _ in file_lines(split_lines(text), source_map):
            self._lines.setdefault((path, number), line)
            self._texts.add((path, line))
        for mapped in source_map:
            if mapped.first == 1:
                self._tops |= {key: max(mapped.count, self._tops.get(key, 0)) for key in mapped.keys}
                self.complete_files.update(mapped.keys if mapped.eof else ())

    def outdate(self, path: str, text: str, source_map: Sequence[MappedSpan]) -> bool:
        """Return True if all lines of an earlier read of one file were read again after the file had changed."""
        shown = {number: line for _, (_, number, line), _ in file_lines(split_lines(text), source_map)}
        is_covered = path in self.complete_files or max(shown) <= self._tops.get(path, 0)
        if not is_covered and all((path, number) in self._lines for number in shown):
            # In the middle of a file, the change may have moved the lines. Equal numbers prove nothing, so the texts of
            # the first and the last line must occur again.
            is_covered = self._texts >= {(path, shown[min(shown)]), (path, shown[max(shown)])}
        return is_covered and any(self._lines.get((path, number)) != line for number, line in shown.items())


def first_that_pays(sizes: Sequence[int], saved: Mapping[int, int], changed: int, prices: Prices) -> int:
    """Return the index of the first message at which a change pays for the prompt cache that it breaks.

    `sizes`: characters of each message. `saved`: characters saved in some of them, by index. From message `changed` on,
    the cache is broken anyway, and savings cost nothing. Return `changed` if no earlier message pays.
    """
    best, first = 0.0, changed
    gain, left = 0, 0
    for at in range(changed - 1, -1, -1):
        gain += saved.get(at, 0)
        left += sizes[at] - saved.get(at, 0)
        worth = gain * prices.read * prices.turns - left * (prices.write - prices.read)
        if at in saved and worth > best:
            best, first = worth, at
    return first
