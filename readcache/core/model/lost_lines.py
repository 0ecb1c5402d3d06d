"""Lines that left the conversation, and the calls that read them again. A fold of the log.

compacted              ->  app.py lines 1-80 are gone; a restored section has lines 1-40
head -n 30 app.py      ->  a reread, answered by a marker that names the section
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from readcache.core.model.events import Delivered, MappedSpan, Origin
from readcache.core.model.immediate_rereads import lines_of, size_of
from readcache.core.model.spans import Span, merge_spans, subtract

# Calls. A reread within this many calls after lines left the conversation counts as caused by their removal. Half of
# all rereads come by the fifth call. The check of real compactions also looks at 20 calls.
WATCHED = 20


class Reread(NamedTuple):
    """The answer of `LostLines.read`: whether a call read lost lines again, and whether a restored section answered
    it."""

    is_one: bool
    is_answered: bool


class LostLines:
    """The lines that one reader lost recently."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[Span, ...]] = {}
        self._until = 0
        self._put_back: set[str] = set()  # keys in restored sections that were not read or written since

    def lose(self, source_map: Iterable[MappedSpan], number: int) -> None:
        """Record that these lines left the conversation after call `number`."""
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
        """Record an answer with its lines. The call is a reread if at least half of the lines were lost."""
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
        """Record the lines of files that a compactor restored."""
        self._put_back.update(key for mapped in section.source_map for key in mapped.keys if key in self._spans)

    def write(self, keys: Iterable[str]) -> bool:
        """Record a write. Return True if one of its files was restored and not read since: the restored section saved a
        read."""
        known = self._put_back.intersection(keys)
        self._put_back -= known
        return bool(known)
