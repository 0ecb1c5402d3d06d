"""Find results that others supersede: repeated ones, and outdated reads.

A repeated result is in other results byte for byte, as a whole or line by line. A read is outdated if a later read
shows its lines after a change. `first_that_pays` finds where pruning outdated reads pays for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from readcache.core.model.events import MappedSpan
from readcache.core.model.policy import Prices
from readcache.core.model.text import bodies, split_lines

Line = tuple[str, int, str]  # a file's key, a line number, the line itself


class KeptResults:
    """The results that stay. Texts are compared like the keys of a set: by a 64-bit hash, then by all their bytes."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._lines: list[frozenset[str]] = []  # all lines of each result
        # (line, must its number be printed?) -> the index in `_lines` of the first result that contains it
        self._sources: dict[tuple[Line, bool], int] = {}
        self._of_file: dict[str, set[str]] = {}  # file -> the texts of its reads, as `_as_lines` writes them

    def add(self, text: str, source_map: Sequence[MappedSpan], file: str | None = None) -> None:
        """Add a result. `source_map`: the file lines in its text. `file`: the only file that it shows, if known."""
        lines = split_lines(text)
        if file is not None:
            without_numbers = [line for _, (_, _, line), _ in file_lines(lines, source_map)]
            self._of_file.setdefault(file, set()).update(map(_as_lines, (lines, without_numbers)))
        for _, line, is_numbered in file_lines(lines, source_map):
            for needs_number in {False, is_numbered}:
                self._sources.setdefault((line, needs_number), len(self._lines))
        self._texts.add(text)
        self._lines.append(frozenset(lines))

    def contains(self, text: str, source_map: Sequence[MappedSpan]) -> bool:
        """Return True if the kept results contain everything that this result says.

        One of them must have the same bytes, or one or several must have the same bytes at the same lines of the same
        file. Other lines, such as a header, must occur in the same results. Blank lines do not count.
        """
        if text in self._texts:
            return True
        lines = split_lines(text)
        rest = {at for at, line in enumerate(lines) if line.strip()}
        sources: set[int] = set()
        for at, line, is_numbered in file_lines(lines, source_map):
            source = self._sources.get((line, is_numbered))
            if source is None:
                return False
            sources.add(source)
            rest.discard(at)
        around = frozenset().union(*(self._lines[source] for source in sources))
        return bool(sources) and all(lines[at] in around for at in rest)

    def contains_part(self, file: str, text: str) -> bool:
        """Return True if the lines of the text are consecutive lines of one kept read of the file. The numbers of the
        lines need not be known."""
        part = _as_lines(split_lines(text))
        return any(part in whole for whole in self._of_file.get(file, ()))


def _as_lines(lines: Sequence[str]) -> str:
    """Return the lines as one text in which each line has a newline before and after it."""
    return "\n" + "".join(f"{line}\n" for line in lines)


def file_lines(lines: list[str], source_map: Sequence[MappedSpan]) -> Iterator[tuple[int, Line, bool]]:
    """Yield (index in the text, line, True if its number is printed) for each line with a known file and number."""
    for mapped in source_map:
        if len(mapped.keys) != 1 or not mapped.first:
            continue
        of_file = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
        for k, body in enumerate(of_file):
            yield mapped.at + k, (mapped.keys[0], mapped.first + k, body), mapped.sep is not None


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
