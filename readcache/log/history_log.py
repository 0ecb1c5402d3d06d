"""The events of a conversation's history, kept in a session's store, in a context of their own: no view is folded from
them, and no look-up for a single call meets them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from readcache.disk.forks import LOGS, ForkLock
from readcache.log.store import Store
from readcache.model.errors import StoreError
from readcache.model.events import Compacted, Failed
from readcache.model.history_events import HistoryEvent
from readcache.model.reply import Reason


class HistoryLog:
    """The log of one history, the context (session id, name) in the store that `store` gives.

    It fails open: errors go to `report` (as `Log.fail`) and are never raised. Events that the store would not take are
    kept, and appended with the next ones.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        context: tuple[str, str],
        clock: Callable[[], float],
        report: Callable[[str, Reason, BaseException], None],
    ) -> None:
        self._store, self._context, self._clock, self._report = store, context, clock, report
        self._later: list[HistoryEvent] = []
        self._lock = ForkLock(LOGS)

    def events(self) -> list[HistoryEvent] | None:
        """What is stored, oldest first; None when the store cannot be read."""
        try:
            events = [record.event for record in self._store().records(*self._context)]
        except StoreError as error:
            self.fail(error)
            return None
        lost = [event for event in events if isinstance(event, Failed | Compacted)]
        if lost:  # a history with a hole is useless
            self.fail(StoreError(getattr(lost[0], "detail", "the session has been removed from the store")))
            return None
        return [event for event in events if isinstance(event, HistoryEvent)]  # others are what the session wrote

    def append(self, events: Sequence[HistoryEvent]) -> None:
        """Stores these events in one transaction. An event whose message is not JSON is not stored."""
        with self._lock:
            self._later += [event for event in events if self._is_storable(event)]
            try:
                if self._later:
                    self._store().append(*self._context, self._later, self._clock())
                self._later = []
            except StoreError as error:
                self.fail(error)

    def _is_storable(self, event: HistoryEvent) -> bool:
        message = getattr(event, "message", None)
        try:
            if json.loads(json.dumps(message)) == message:
                return True
        except (TypeError, ValueError, RecursionError):
            pass
        self.fail(StoreError(f"a message is not JSON ({type(event).__name__}): it is kept in memory only"))
        return False

    def fail(self, error: BaseException) -> None:
        """Counts a failure of ours."""
        self._report("", Reason.STORE_FAILED if isinstance(error, StoreError) else Reason.INTERNAL_ERROR, error)
