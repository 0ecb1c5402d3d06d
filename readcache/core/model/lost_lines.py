"""Lines that left the conversation, and the calls that read them again. A fold of the log.

compacted              ->  app.py lines 1-80 are gone; a restored section holds 1-40
head -n 30 app.py      ->  a re-read, answered by a marker that names the section
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from readcache.core.model.events import Delivered, MappedSpan, Origin
from readcache.core.model.immediate_rereads import lines_of, size_of
from readcache.core.model.spans import Span, merge_spans, subtract

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
        self._put_back: set[str] = set()  # keys of restored sections that were not read or written since

    def lose(self, source_map: Iterable[MappedSpan], number: int) -> None:
        """These lines left after call `number`."""
        spans: dict[str, list[Span]] = {}
        for mapped in source_map:
            self._put_back.difference_update(mapped.keys)
            if len(mapped.keys) == 1 and mapped.first:
                spans.setdefault(mapped.keys[0], []).append((mapped.first, mapped.first + mapped.count - 1))
        if number > self._until:
            self._spans = {}
        for key, found in spans.items():
            self._spans[key] = merge_spans([*self._spans.get(key, ()), *found])
        self._until = number + WATCHED if spans else self._until

    def read(self, event: Delivered) -> Reread:
        """Take in an answer with its lines. It is a re-read if at least half of its lines were lost."""
        self._put_back.difference_update(key for mapped in event.source_map for key in mapped.keys)
        self._put_back.difference_update(marker.path for marker in event.markers if marker.path)
        if event.when.call > self._until or event.account is None:
            return Reread(False, False)
        asked = lines_of(event, shown=True)
        left = {key: subtract(spans, self._spans.get(key, ())) for key, spans in asked.items()}
        total = sum(map(size_of, asked.values()))
        is_one = total > 0 and 2 * sum(map(size_of, left.values())) <= total
        source_spans = (span for marker in event.markers for span in marker.source_spans)
        return Reread(is_one, is_one and any(span.origin is Origin.RESTORED for span in source_spans))

    def put_back(self, section: Delivered) -> None:
        """A compactor put lines of files back."""
        self._put_back.update(key for mapped in section.source_map for key in mapped.keys if key in self._spans)

    def write(self, keys: Iterable[str]) -> bool:
        """Take in a write. True if a file of it was put back and not read again: its writer was spared a read."""
        known = self._put_back.intersection(keys)
        self._put_back -= known
        return bool(known)
