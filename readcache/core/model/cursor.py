"""A cursor in the log: a position between two events, and what one reader could see there.

cursor = Cursor(session.events(), "main")
cursor.after("call_7").covers("/w/app.py", 1, 80)   # the view at that position
while record := cursor.step():                      # one record further, without folding earlier ones again
    ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from readcache.core.model.events import Delivered, Record, Wrote
from readcache.core.model.records import event_for
from readcache.core.model.view import View

# Number of calls that an error names if it cannot find the requested call.
NAMED = 5


class NoSuchCall(LookupError):
    """A call that the reader did not make. The text names the reader's newest calls."""


class Cursor:
    """A position in a session's records, as one of its readers takes them. It begins before the first record. Going
    forward folds the records in between. Going back folds all earlier records again from scratch."""

    def __init__(self, records: Iterable[Record], agent_id: str) -> None:
        self.agent_id = agent_id
        self.view = View()
        """The reader's view at this position. The cursor owns it: the view changes when the cursor moves."""
        self._records: Sequence[Record] = tuple(records)
        self._at = 0

    @property
    def past(self) -> Sequence[Record]:
        """The records before the cursor, oldest first: the log as it was here."""
        return self._records[: self._at]

    def step(self) -> Record | None:
        """Move past the next record and return it. Return None at the end."""
        if self._at == len(self._records):
            return None
        record = self._records[self._at]
        self._at += 1
        event = event_for(record, self.agent_id)
        if event is not None:
            self.view.apply(event)
        return record

    def after(self, call_id: str) -> View:
        """Go to the moment after the call was answered, before the harness changed its result. Return the view there.
        An ID that was used twice names the newer call. Raise NoSuchCall if this reader did not make that call."""
        if call_id not in self._ends:
            newest = ", ".join(list(self._ends)[: -NAMED - 1 : -1])
            there = f"its newest calls are {newest}" if newest else "it made none that was recorded"
            raise NoSuchCall(f"agent {self.agent_id} made no call {call_id!r}: {there}")
        return self._go(self._ends[call_id])

    def end(self) -> View:
        """Go to the position after the last record. Return the view there."""
        return self._go(len(self._records))

    def _go(self, at: int) -> View:
        if at < self._at:
            self.view, self._at = View(), 0
        while self._at < at:
            self.step()
        return self.view

    @cached_property
    def _ends(self) -> dict[str, int]:
        """Call ID -> the position after its last record, in the order in which the calls were made."""
        ends: dict[str, int] = {}
        for index, record in enumerate(self._records):
            event = record.event
            if record.agent_id == self.agent_id and isinstance(event, (Delivered, Wrote)) and event.call_id:
                ends.pop(event.call_id, None)
                ends[event.call_id] = index + 1
        return ends
