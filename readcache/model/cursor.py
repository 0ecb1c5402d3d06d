"""A cursor in the log: a position between two events, and what one reader could see there.

cursor = Cursor(session.events(), "main")
cursor.after("call_7").covers("/w/app.py", 1, 80)   # the view as of then
while record := cursor.step():                      # one event further; nothing is folded anew
    ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from readcache.model.events import Delivered, Record, Wrote
from readcache.model.records import event_for
from readcache.model.view import View

# Calls that are named to whoever asked for one that is not there.
NAMED = 5


class NoSuchCall(LookupError):
    """The reader made no such call. The text names its newest ones."""


class Cursor:
    """A position in a session's records, as one of its readers takes them. It begins in front of the first.

    To go forward costs what lies between; to go back, all that lies before."""

    def __init__(self, records: Iterable[Record], agent_id: str) -> None:
        self.agent_id = agent_id
        self.view = View()
        """What the reader could see here. The cursor owns it: it changes as the cursor moves."""
        self._records: Sequence[Record] = tuple(records)
        self._at = 0
        self._spans: dict[str, tuple[int, int]] | None = None  # call id -> its first record, and behind its last

    @property
    def past(self) -> Sequence[Record]:
        """The records behind the cursor, oldest first: the log as it was here."""
        return self._records[: self._at]

    def step(self) -> Record | None:
        """Goes over the next record, and gives it. None at the end."""
        if self._at == len(self._records):
            return None
        record = self._records[self._at]
        self._at += 1
        event = event_for(record, self.agent_id)
        if event is not None:
            self.view.apply(event)
        return record

    def before(self, call_id: str) -> View:
        """Goes to where the call was about to be made. NoSuchCall as for `after`."""
        return self._go(self._span(call_id)[0])

    def after(self, call_id: str) -> View:
        """Goes to where the call had just been answered; what a harness did to its result later lies ahead. An id that
        was used twice names the newer call. NoSuchCall for one that this reader never made."""
        return self._go(self._span(call_id)[1])

    def after_seq(self, seq: int) -> View:
        """Goes behind the record with this number, and all that have lower ones."""
        return self._go(sum(record.seq <= seq for record in self._records))

    def end(self) -> View:
        """Goes behind the last record."""
        return self._go(len(self._records))

    def _go(self, at: int) -> View:
        if at < self._at:
            self.view, self._at = View(), 0
        while self._at < at:
            self.step()
        return self.view

    def _span(self, call_id: str) -> tuple[int, int]:
        if self._spans is None:
            self._spans = self._find_spans()
        if call_id not in self._spans:
            newest = ", ".join(list(self._spans)[: -NAMED - 1 : -1])
            there = f"its newest calls are {newest}" if newest else "it made none that was recorded"
            raise NoSuchCall(f"agent {self.agent_id} made no call {call_id!r}: {there}")
        return self._spans[call_id]

    def _find_spans(self) -> dict[str, tuple[int, int]]:
        """In the order in which the calls were made."""
        spans: dict[str, tuple[int, int]] = {}
        numbers: dict[str, int] = {}
        for place, record in enumerate(self._records):
            event = record.event
            if record.agent_id != self.agent_id or not isinstance(event, (Delivered, Wrote)) or not event.call_id:
                continue
            number = event.call if isinstance(event, Wrote) else event.when.call
            name = event.call_id
            is_same = name in spans and numbers[name] == number
            first = spans.pop(name)[0] if is_same else place
            if not is_same:
                spans.pop(name, None)
            spans[name], numbers[name] = (first, place + 1), number
        return spans
