"""Check each omission in a log. The specification receives the log's events, long after they happened. The code that
decides about omissions takes no part in the check.

    check = LogCheck()
    check.begin("session-1", "main", store.records("session-1", "main"))
    for event in events_for(records, "main"):
        check.take(event)
    check.proven, check.faults
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from readcache.core.model.events import (
    Amended,
    Compacted,
    Delivered,
    Event,
    Forgot,
    MarkerRecord,
    Origin,
    Record,
    Rewound,
    SourceSpan,
    Wrote,
)
from readcache.core.model.spec.marker import Marker, NamedSource
from readcache.core.model.spec.world import World
from readcache.core.model.text import digest_lines, split_lines
from readcache.core.model.unconfirmed import hand_out, lacks_text, without_text

MOST_NAMED = 5
_Text = tuple[str, Origin]  # a call, and the origin of one of its texts


class LogCheck:
    """The findings about the markers of any number of readers, one after the other."""

    def __init__(self) -> None:
        self.markers = 0
        self.proven = 0
        self.faults: list[str] = []  # the faults of the first few markers that are not proven
        self._where, self._reader = "", ""
        self._world = World()
        self._lines: dict[_Text, list[str]] = {}
        self._answered: set[str] = set()  # calls
        self._erased: dict[_Text, list[str]] = {}
        self._removed: set[str] = set()  # calls whose texts were removed from the log
        self._waiting: dict[str, Delivered] = {}  # unconfirmed replies by call

    def begin(self, session: str, agent: str, records: Iterable[Record]) -> None:
        """Start with the next reader and all of its records.

        If a harness settles a text, the older text is erased from the store. Then only the newer text can be searched.
        """
        self._where, self._reader, self._world = f"session {session}, {agent}", agent, World()
        self._lines, self._answered, self._erased, self._removed, self._waiting = {}, set(), {}, set(), {}
        for record in records:
            event = record.event
            if isinstance(event, Amended) and event.erases and record.agent_id == agent:
                self._erased.setdefault((event.call_id, event.origin), []).append(event.text)
            elif isinstance(event, Forgot) and event.erased and record.agent_id == agent:
                self._removed |= event.call_ids

    def take(self, event: Event) -> None:
        """Check the reader's next event."""
        world, reader = self._world, self._reader
        if isinstance(event, Delivered) and event.unconfirmed:
            self._waiting[event.call_id] = event
            event = without_text(event)  # if the text was ever shown, a later event says so
        elif isinstance(event, Amended) and (waiting := self._waiting.pop(event.call_id, None)) and event.confirms:
            event = hand_out(waiting)
        if isinstance(event, (Delivered, Amended)):
            self._take_text(event)
        elif isinstance(event, Wrote):
            world.written(event.keys)
        elif isinstance(event, Compacted):
            world.compacted(reader, event.kept)
        elif isinstance(event, Forgot):
            world.cleared(reader, event.call_ids)
        elif isinstance(event, Rewound):
            world.rewound(reader, event.call_id)

    def _take_text(self, event: Delivered | Amended) -> None:
        name = event.call_id, event.origin
        if isinstance(event, Delivered) and event.account is not None:
            self._answered.add(event.call_id)  # without an account, it copies a text that another reader got
        is_counted = event.call_id in self._answered
        markers = list(self._markers(event, is_counted=is_counted))
        context: dict[str, Any] = {"kind": event.origin.value, "markers": markers}
        if isinstance(event, Amended):
            found = self._world.clipped(self._reader, event.call_id, event.text, **context)
        else:
            context |= {"number": event.when.call, "batch": event.when.batch}
            found = self._world.shown(self._reader, event.call_id, event.text, **context)
        for finding in found if is_counted else ():
            self.markers += 1
            self.proven += not finding.fault
            self._blame(event, finding.fault)
        self._lines.pop(name, None)
        if isinstance(event, Amended) or not lacks_text(event):
            self._lines[name] = split_lines(event.text)

    def _blame(self, event: Delivered | Amended, fault: str) -> None:
        if fault and len(self.faults) < MOST_NAMED:
            self.faults.append(f"{self._where}, call {event.call_id}: {fault}")

    def _markers(self, event: Delivered | Amended, *, is_counted: bool) -> Iterator[Marker]:
        """Yield the event's markers in the form of the specification. If `is_counted`, count a marker whose log
        record is itself faulty."""
        for logged in event.markers:
            # A retired marker says that its lines are gone. The log no longer has the lines of a removed call.
            if self._removed.intersection((event.call_id, *logged.sources)) or not logged.sources:
                continue
            marker, fault = self._marker(logged)
            if marker is not None:
                yield marker
            elif is_counted:
                self.markers += 1
                self._blame(event, fault)

    def _marker(self, logged: MarkerRecord) -> tuple[Marker | None, str]:
        """Return the marker; or None, and the fault in the log's record of it."""
        if sum(span.count for span in logged.source_spans) != logged.end - logged.start + 1:
            return None, "the log does not say where all of its lines stand"
        if unknown := set(logged.sources) - {span.call_id for span in logged.source_spans}:
            return None, f"the log does not say what stands in {min(unknown)}, which the marker names"
        sources, found = list[NamedSource](), list[str]()
        for span in logged.source_spans:
            lines, at = self._lines_of(span)
            if lines is None:
                return None, f"{span.count} lines do not stand in {span.call_id}"
            sources.append(NamedSource(span.call_id, span.origin.value, at, span.count))
            found += lines
        lines = logged.lines.split("\n") if logged.lines else found
        return Marker(logged.line, logged.wording, tuple(lines), tuple(sources), logged.path, logged.start), ""

    def _lines_of(self, span: SourceSpan) -> tuple[list[str] | None, int]:
        """Return the lines that have the span's digest, and their index. The index is -1 if the lines come from a text
        that replaced an erased text. Return None instead of the lines if they are in no text."""
        name = span.call_id, span.origin
        if name in self._lines:
            lines = self._lines[name][span.at : span.at + span.count]
            return (lines if digest_lines(lines) == span.digest else None), span.at
        for text in map(split_lines, self._erased.get(name, ())):
            for at in range(len(text)):
                if digest_lines(lines := text[at : at + span.count]) == span.digest:
                    return lines, -1
        return None, -1
