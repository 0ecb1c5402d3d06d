"""Lines of deliveries at hand: an agent goes back and forth between a few files, and splitting them takes time."""

from __future__ import annotations

from collections import OrderedDict

from readcache.model import text
from readcache.model.key_view import Delivery, Reference

CACHED_LINES = 10_000  # enough for the few files of which an agent reads parts again and again


class LineCache:
    """The lines that were asked for last, up to `CACHED_LINES`."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[Delivery, int, int, str | None], list[str]] = OrderedDict()
        self._count = 0

    def bodies(self, reference: Reference) -> list[str]:
        """The reference's lines without the numbers in front of them."""
        piece = reference.piece
        key = (reference.delivery, piece.at, piece.count, piece.sep)
        lines = self._lines.get(key)
        if lines is not None:
            self._lines.move_to_end(key)
            return lines
        lines = text.split_lines(reference.event.text)[piece.at : piece.at + piece.count]
        lines = self._lines[key] = text.bodies(lines, piece.sep)
        self._count += len(lines)
        while self._count > CACHED_LINES and len(self._lines) > 1:
            self._count -= len(self._lines.popitem(last=False)[1])
        return lines

    def clear(self) -> None:
        """Lets go of deliveries that may be gone."""
        self._lines.clear()
        self._count = 0
