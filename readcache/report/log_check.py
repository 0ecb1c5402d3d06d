"""Is each omission in a log right? Its events are told to the specification, long after they happened. What decides
omissions has no part in it.

    check = LogCheck()
    check.begin("session-1", "main", store.records("session-1", "main"))
    for event in events_for(records, "main"):
        check.take(event)
    check.proven, check.faults
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from readcache.model.events import (
    Compacted,
    Delivered,
    Event,
    Forgot,
    Origin,
    Pointer,
    Record,
    Rewound,
    Settled,
    Stand,
    Wrote,
)
from readcache.model.spec.marker import Finding, Marker, NamedPlace
from readcache.model.spec.world import World
from readcache.model.text import digest_lines, split_lines
from readcache.model.withheld import hand_out, is_withheld, withhold

MOST_NAMED = 5
_Text = tuple[str, Origin]  # a call, and which of its texts


class LogCheck:
    """What was found out about the markers of any number of readers, one after the other."""

    def __init__(self) -> None:
        self.markers = 0
        self.proven = 0
        self.faults: list[str] = []  # of the first few that are not proven, what is wrong
        self._where, self._reader = "", ""
        self._world = World()
        self._lines: dict[_Text, list[str]] = {}
        self._batches: dict[str, str] = {}
        self._erased: dict[_Text, list[str]] = {}
        self._waiting: dict[str, Delivered] = {}  # unconfirmed replies by call

    def begin(self, session: str, agent: str, records: Iterable[Record]) -> None:
        """The next reader, with all of its records. When a harness settles a text, the older one is erased from the
        store, and only the newer one can be looked into."""
        self._where, self._reader, self._world = f"session {session}, {agent}", agent, World()
        self._lines, self._batches, self._erased, self._waiting = {}, {}, {}, {}
        for record in records:
            event = record.event
            if isinstance(event, Settled) and event.erases and record.agent_id == agent:
                self._erased.setdefault((event.call_id, event.origin), []).append(event.text)

    def take(self, event: Event) -> None:
        """The reader's next event."""
        world, reader = self._world, self._reader
        if isinstance(event, Delivered) and event.unconfirmed:
            self._waiting[event.call_id] = event
            event = withhold(event)  # if it was ever shown, a later event says so
        elif isinstance(event, Settled) and (waiting := self._waiting.pop(event.call_id, None)) and event.confirms:
            event = hand_out(waiting)
        if isinstance(event, Delivered):
            place = {"kind": event.origin.value, "number": event.when.call, "batch": event.when.batch}
            markers = list(self._markers(event, is_told=event.account is not None))
            self._count(world.shown(reader, event.call_id, event.text, markers=markers, **place), event)  # type: ignore[arg-type]
            if event.account is not None:  # else a copy of what another reader was shown
                self._batches[event.call_id] = event.when.batch
            self._keep(event, is_known=not is_withheld(event))
        elif isinstance(event, Settled):
            markers = list(self._markers(event, is_told=event.call_id in self._batches))
            found = world.clipped(reader, event.call_id, event.text, kind=event.origin.value, markers=markers)
            self._count(found, event)
            self._keep(event, is_known=True)
        elif isinstance(event, Wrote):
            world.written(event.keys)
        elif isinstance(event, Compacted):
            world.compacted(reader, event.kept)
        elif isinstance(event, Forgot):
            world.cleared(reader, event.call_ids)
        elif isinstance(event, Rewound):
            world.rewound(reader, event.call_id)

    def _keep(self, event: Delivered | Settled, *, is_known: bool) -> None:
        name = event.call_id, event.origin
        self._lines.pop(name, None)
        if is_known:
            self._lines[name] = split_lines(event.text)

    def _count(self, findings: Iterable[Finding], event: Delivered | Settled) -> None:
        for finding in findings:
            if event.call_id in self._batches or getattr(event, "account", None) is not None:
                self.markers += 1
                self.proven += not finding.fault
                self._blame(event, finding.fault)

    def _blame(self, event: Delivered | Settled, fault: str) -> None:
        if fault and len(self.faults) < MOST_NAMED:
            self.faults.append(f"{self._where}, call {event.call_id}: {fault}")

    def _markers(self, event: Delivered | Settled, *, is_told: bool) -> Iterator[Marker]:
        """The event's markers, as the specification has them. A fault of the log itself is counted here."""
        for pointer in event.pointers:
            if not pointer.sources:  # it says that the lines are gone
                continue
            marker, fault = self._marker(pointer)
            if marker is not None:
                yield marker
            elif is_told:
                self.markers += 1
                self._blame(event, fault)

    def _marker(self, pointer: Pointer) -> tuple[Marker | None, str]:
        """A marker; or None, and what is wrong with what the log says of it."""
        if sum(stand.count for stand in pointer.stands) != pointer.end - pointer.start + 1:
            return None, "the log does not say where all of its lines stand"
        if unknown := set(pointer.sources) - {stand.call_id for stand in pointer.stands}:
            return None, f"the log does not say what stands in {min(unknown)}, which the marker names"
        places, found = list[NamedPlace](), list[str]()
        for stand in pointer.stands:
            lines, at = self._lines_of(stand)
            if lines is None:
                return None, f"{stand.count} lines do not stand in {stand.call_id}"
            places.append(NamedPlace(stand.call_id, stand.origin.value, at, stand.count))
            found += lines
        lines = pointer.lines.split("\n") if pointer.lines else found
        return Marker(pointer.line, pointer.wording, tuple(lines), tuple(places), pointer.path, pointer.start), ""

    def _lines_of(self, stand: Stand) -> tuple[list[str] | None, int]:
        """The lines by their digest, and where they are; -1 in a text that was erased."""
        name = stand.call_id, stand.origin
        if name in self._lines:
            lines = self._lines[name][stand.at : stand.at + stand.count]
            return (lines if digest_lines(lines) == stand.digest else None), stand.at
        for text in map(split_lines, self._erased.get(name, ())):
            for at in range(len(text)):
                if digest_lines(lines := text[at : at + stand.count]) == stand.digest:
                    return lines, -1
        return None, -1
