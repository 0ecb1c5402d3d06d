"""Is each omission right? Proven from the log alone, long after: the lines that a marker stands for must stand, byte
for byte, in a text that the reader could see when it was given the marker. What decides omissions has no part in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from readcache.model.events import Delivered, Origin, Pointer, Record, Settled, Stand
from readcache.model.spec.lines import is_same_line
from readcache.model.text import digest_lines, split_lines
from readcache.model.view import View

MOST_NAMED = 5


class MarkerProof:
    """What was proven of the markers of any number of readers."""

    def __init__(self) -> None:
        self.markers = 0
        self.proven = 0
        self.old = 0  # beside these: markers of a version that did not log where their lines stand
        self.faults: list[str] = []  # of the first few that are not proven, what is wrong
        self._where = ""
        self._erased: dict[tuple[str, Origin], list[str]] = {}

    def begin(self, session: str, agent: str, records: Iterable[Record]) -> None:
        """The next reader, with all of its records. When a harness settles a text, the older one is erased from the
        store, and only the newer one can be checked."""
        self._where, self._erased = f"session {session}, {agent}", {}
        for record in records:
            event = record.event
            if isinstance(event, Settled) and event.erases and record.agent_id == agent:
                self._erased.setdefault((event.call_id, event.origin), []).append(event.text)

    def delivered(self, view: View, event: Delivered) -> None:
        """A reply. `view`: what the reader could see just before it."""
        if event.account is not None:  # else a copy of what another reader was shown
            self._take(view, event.call_id, event.when.batch, event.pointers)

    def settled(self, view: View, event: Settled, before: Iterable[Delivered]) -> None:
        """Another text in the place of the texts `before`: its markers that are new."""
        known = {pointer.stands for old in before for pointer in old.pointers}
        new = [pointer for pointer in event.pointers if pointer.stands not in known]
        for old in before:
            if old.account is not None:
                self._take(view, event.call_id, old.when.batch, new)

    def _take(self, view: View, call_id: str, batch: str, pointers: Iterable[Pointer]) -> None:
        for pointer in pointers:
            if not pointer.sources:  # it says that the lines are gone
                continue
            if not pointer.stands:
                self.old += 1
                continue
            self.markers += 1
            fault = next(self._faults(view, batch, pointer), "")
            self.proven += not fault
            if fault and len(self.faults) < MOST_NAMED:
                self.faults.append(f"{self._where}, call {call_id}: {fault}")

    def _faults(self, view: View, batch: str, pointer: Pointer) -> Iterator[str]:
        if sum(stand.count for stand in pointer.stands) != pointer.end - pointer.start + 1:
            yield "the log does not say where all of its lines stand"
        for source in set(pointer.sources) - {stand.call_id for stand in pointer.stands}:
            yield f"the log does not say what stands in {source}, which the marker names"
        found: list[str] = []
        for stand in pointer.stands:
            there = [d.event for d in view.of_call(stand.call_id) if d.event.origin is stand.origin]
            if not there:
                yield f"{stand.call_id} was not visible then"
            elif batch and there[0].when.batch == batch:
                yield f"{stand.call_id} was called at the same time"
            else:
                lines = next(filter(None, (self._lines_in(event, stand) for event in there)), None)
                if lines is None:
                    yield f"{stand.count} lines do not stand in {stand.call_id}"
                found += lines or ()
        printed = pointer.lines.split("\n") if pointer.lines else found
        if len(printed) != len(found) or not all(map(is_same_line, printed, found)):
            yield "its lines stand there otherwise than they were printed, and not in what is in front of them alone"

    def _lines_in(self, event: Delivered, stand: Stand) -> list[str] | None:
        """The lines that the stand is of, if the text has them."""
        if event.text or event.account is None or event.account.shown_chars is None:
            texts, places = [split_lines(event.text)], range(stand.at, stand.at + 1)
        else:
            texts = [*map(split_lines, self._erased.get((stand.call_id, stand.origin), ()))]
            places = range(max(map(len, texts), default=0))
        stretches = (lines[at : at + stand.count] for lines in texts for at in places)
        return next((lines for lines in stretches if digest_lines(lines) == stand.digest), None)
