"""Which results say nothing that others do not say: byte for byte, as a whole or line for line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readcache.core.model.events import MappedSpan
from readcache.core.model.text import bodies, split_lines

Line = tuple[str, int, str]  # a file's key, a line number, the line itself


class KeptResults:
    """The results that stay. Texts are compared as Python compares keys of a set, by a 64-bit hash and then by all
    their bytes."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._lines: list[frozenset[str]] = []  # all lines of each result
        # (line, must a number stand in front?) -> the first result that holds it, by its place in `_lines`
        self._sources: dict[tuple[Line, bool], int] = {}

    def add(self, text: str, source_map: Sequence[MappedSpan]) -> None:
        """Adds a result; `source_map` say which lines of which files stand in it."""
        lines = split_lines(text)
        for _, line, is_numbered in file_lines(lines, source_map):
            for needs_number in {False, is_numbered}:
                self._sources.setdefault((line, needs_number), len(self._lines))
        self._texts.add(text)
        self._lines.append(frozenset(lines))

    def contains(self, text: str, source_map: Sequence[MappedSpan]) -> bool:
        """True if the remaining results say all that this one says: the same bytes in one of them, or the same bytes on
        the same lines of the same file in one or several. Other lines, such as a header, must stand in the same
        results."""
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
    """(place in the text, line, does a number stand in front) for each line whose file and number are known."""
    for mapped in source_map:
        if len(mapped.keys) != 1 or not mapped.first:
            continue
        of_file = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
        for k, body in enumerate(of_file):
            yield mapped.at + k, (mapped.keys[0], mapped.first + k, body), mapped.sep is not None
