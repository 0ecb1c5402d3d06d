"""The events of a conversation's history, kept in a session's store, in a context of their own: no view is folded from
them, and no look-up for a single call meets them."""

from __future__ import annotations

from collections.abc import Sequence

from readcache.log.log import Log
from readcache.log.store.codec import is_storable
from readcache.model.errors import StoreError
from readcache.model.events import Compacted, Failed
from readcache.model.history_events import HistoryEvent


class HistoryLog:
    """Where a compactor keeps the events of a reader's message list: beside the reader's `log`, in the same store.

    It fails open: errors are counted in that log and never raised. Events that the store would not take are kept, and
    appended with the next ones.
    """

    def __init__(self, log: Log) -> None:
        self._log, self._context = log, (log.session_id, f"{log.agent_id}/messages")
        self._later: list[HistoryEvent] = []

    def events(self) -> list[HistoryEvent] | None:
        """What is stored, oldest first; None when the store cannot be read."""
        try:
            events = [record.event for record in self._log.store.records(*self._context)]
            lost = next((event for event in events if isinstance(event, Failed | Compacted)), None)
            if lost is not None:  # a history with a hole is useless
                raise StoreError(getattr(lost, "detail", "the session has been removed from the store"))
        except StoreError as error:
            self.fail(error)
            return None
        return [event for event in events if isinstance(event, HistoryEvent)]  # others are what the session wrote

    def append(self, events: Sequence[HistoryEvent]) -> None:
        """Stores these events in one transaction. An event whose message is not JSON is not stored."""
        with self._log.lock:
            for event in events:
                if is_storable(event):
                    self._later.append(event)
                else:
                    what = f"a message is not JSON ({type(event).__name__}): it is kept in memory only"
                    self.fail(StoreError(what))
            try:
                if self._later:
                    self._log.store.append(*self._context, self._later, self._log.clock())
                self._later = []
            except StoreError as error:
                self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Counts a failure of ours."""
        self._log.fail("", error)
