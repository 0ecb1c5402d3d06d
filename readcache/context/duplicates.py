"""Find results that repeat other results: byte for byte, as a whole or line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readcache.core.model.events import MappedSpan
from readcache.core.model.text import bodies, split_lines

Line = tuple[str, int, str]  # a file's key, a line number, the line itself


class KeptResults:
    """The results that stay. Texts are compared like the keys of a set: by a 64-bit hash, then by all their bytes."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._lines: list[frozenset[str]] = []  # all lines of each result
        # (line, must its number be printed?) -> the index in `_lines` of the first result that contains it
        self._sources: dict[tuple[Line, bool], int] = {}

    def add(self, text: str, source_map: Sequence[MappedSpan]) -> None:
        """Add a result. `source_map`: the file lines in its text."""
        lines = split_lines(text)
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


def file_lines(lines: list[str], source_map: Sequence[MappedSpan]) -> Iterator[tuple[int, Line, bool]]:
    """Yield (index in the text, line, True if its number is printed) for each line with a known file and number."""
    for mapped in source_map:
        if len(mapped.keys) != 1 or not mapped.first:
            continue
        of_file = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
        for k, body in enumerate(of_file):
            yield mapped.at + k, (mapped.keys[0], mapped.first + k, body), mapped.sep is not None
