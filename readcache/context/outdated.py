"""Which reads are outdated: a later one shows their lines as they are since, and where a cut there pays for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from readcache.context.duplicates import file_lines
from readcache.core.model.events import MappedSpan
from readcache.core.model.policy import Prices
from readcache.core.model.text import split_lines


class LaterReads:
    """The lines of files that later reads show. Add results from the last to the first: the newest line counts."""

    def __init__(self) -> None:
        self.complete_files: set[str] = set()  # files that one of them shows whole
        self._tops: dict[str, int] = {}  # file -> how many of its first lines one of them shows
        self._lines: dict[tuple[str, int], str] = {}
        self._texts: set[tuple[str, str]] = set()

    def add(self, text: str, source_map: Sequence[MappedSpan]) -> None:
        """Add a result. `source_map` say which of its lines are which lines of which files."""
        for _, (path, number, line), _ in file_lines(split_lines(text), source_map):
            self._lines.setdefault((path, number), line)
            self._texts.add((path, line))
        for mapped in source_map:
            if mapped.first == 1:
                self._tops |= {key: max(mapped.count, self._tops.get(key, 0)) for key in mapped.keys}
                self.complete_files.update(mapped.keys if mapped.eof else ())

    def outdate(self, path: str, text: str, source_map: Sequence[MappedSpan]) -> bool:
        """True if the lines of an earlier read of one file were all read again, and it had changed by then. In the
        middle of a file their numbers do not prove it, as the change may have moved them: the first and the last must
        be there again."""
        shown = {number: line for _, (_, number, line), _ in file_lines(split_lines(text), source_map)}
        is_covered = path in self.complete_files or max(shown) <= self._tops.get(path, 0)
        if not is_covered and all((path, number) in self._lines for number in shown):
            is_covered = self._texts >= {(path, shown[min(shown)]), (path, shown[max(shown)])}
        return is_covered and any(self._lines.get((path, number)) != line for number, line in shown.items())


def first_that_pays(sizes: Sequence[int], saved: Mapping[int, int], changed: int, prices: Prices) -> int:
    """The first message at which a cut pays for the prompt cache that it breaks.

    `sizes` of the messages; `saved` in some of them. From message `changed` on the cache is broken anyway, and what is
    saved costs nothing.
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
