"""Which results say nothing that others do not say: byte for byte, as a whole or line for line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readcache.model.events import Piece
from readcache.model.text import bodies, split_lines

Line = tuple[str, int, str]  # a file's key, a line number, the line itself


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result: its text, which lines of which files stand in it, and whether it may go."""

    place: int
    text: str
    pieces: tuple[Piece, ...]
    may_go: bool


def duplicates(shown: Sequence[ShownResult], *, newest: bool) -> Iterator[ShownResult]:
    """Those that may go because what stays holds all of them: a result with the very same bytes, or one or several
    reads with the same bytes on the same lines of the same file. What goes is never what another one goes for.

    `newest`: the newest of equals stays, else the oldest. Texts are compared as Python compares keys of a set, by a
    64-bit hash and then by all their bytes.
    """
    kept = _Kept()
    for item in reversed(shown) if newest else shown:
        if item.may_go and kept.holds(item):
            yield item
        else:
            kept.add(item)


class _Kept:
    """The results that stay."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._raw: dict[Line, int] = {}
        self._numbered: dict[Line, int] = {}
        self._lines: dict[int, frozenset[str]] = {}

    def add(self, item: ShownResult) -> None:
        self._texts.add(item.text)
        lines = split_lines(item.text)
        self._lines[item.place] = frozenset(lines)
        for _, line, is_numbered in _file_lines(item, lines):
            self._raw.setdefault(line, item.place)
            if is_numbered:
                self._numbered.setdefault(line, item.place)

    def holds(self, item: ShownResult) -> bool:
        """Does every line of it stand in what stays? Lines around a file's, such as a header, in the same sources."""
        if item.text in self._texts:
            return True
        lines = split_lines(item.text)
        rest = {at for at, line in enumerate(lines) if line.strip()}
        sources: set[int] = set()
        for at, line, is_numbered in _file_lines(item, lines):
            source = (self._numbered if is_numbered else self._raw).get(line)
            if source is None:
                return False
            sources.add(source)
            rest.discard(at)
        around = frozenset().union(*(self._lines[source] for source in sources))
        return bool(sources) and all(lines[at] in around for at in rest)


def _file_lines(item: ShownResult, lines: list[str]) -> Iterator[tuple[int, Line, bool]]:
    """(place in the text, line, does a number stand in front) for each line whose file and number are known."""
    for piece in item.pieces:
        if len(piece.keys) != 1 or not piece.first:
            continue
        of_file = bodies(lines[piece.at : piece.at + piece.count], piece.sep)
        for k, body in enumerate(of_file):
            yield piece.at + k, (piece.keys[0], piece.first + k, body), piece.sep is not None
