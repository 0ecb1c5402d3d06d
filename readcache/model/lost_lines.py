"""Lines that left the conversation, and the calls that read them again. A fold of the log.

compacted              ->  app.py lines 1-80 are gone; a restored section holds 1-40
head -n 30 app.py      ->  a re-read, answered by a marker that names the section
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from readcache.model.bounces import lines_of, size_of
from readcache.model.events import Delivered, Origin, Piece
from readcache.model.spans import Span, merge_spans, subtract

# A read within so many calls after lines left counts as caused by that. By the fifth call, half of all re-reads have
# come; 20 calls are also what the check of real compactions looks at.
WATCHED = 20


class Reread(NamedTuple):
    """Whether a call read lost lines again, and whether a restored section answered it."""

    is_one: bool
    is_answered: bool


class LostLines:
    """The lines that one reader lost lately."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[Span, ...]] = {}
        self._until = 0

    def lose(self, pieces: Iterable[Piece], number: int) -> None:
        """These lines left after call `number`."""
        spans: dict[str, list[Span]] = {}
        for piece in pieces:
            if len(piece.keys) == 1 and piece.first:
                spans.setdefault(piece.keys[0], []).append((piece.first, piece.first + piece.count - 1))
        if number > self._until:
            self._spans = {}
        for key, found in spans.items():
            self._spans[key] = merge_spans([*self._spans.get(key, ()), *found])
        self._until = number + WATCHED if spans else self._until

    def read(self, event: Delivered) -> Reread:
        """Take in an answer with its lines. It is a re-read if at least half of its lines were lost."""
        if event.when.call > self._until or event.account is None:
            return Reread(False, False)
        asked = lines_of(event, shown=True)
        left = {key: subtract(spans, self._spans.get(key, ())) for key, spans in asked.items()}
        total = sum(map(size_of, asked.values()))
        is_one = total > 0 and 2 * sum(map(size_of, left.values())) <= total
        stands = (stand for pointer in event.pointers for stand in pointer.stands)
        return Reread(is_one, is_one and any(stand.origin is Origin.RESTORED for stand in stands))
