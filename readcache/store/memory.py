"""The store that lives and dies with its process: for one session, for tests, for mocked file systems."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from readcache.errors import StoreError
from readcache.events import Delivered, Event, Record, Settled, Wrote
from readcache.store.codec import SOURCE, names, wanted


@dataclass(slots=True)
class _Context:
    """What one reader's view is folded from: its own records, and what others wrote."""

    records: list[Record] = field(default_factory=list)
    general: list[Record] = field(default_factory=list)  # those that every look-up returns
    of_call: dict[str, list[Record]] = field(default_factory=dict)  # deliveries, and what was settled for them
    found_by: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    newest_call: tuple[str, ...] = ()  # the last one that delivered something
    own: int = 0
    last_at: float = 0.0

    def add(self, record: Record) -> None:
        event = record.event
        self.records.append(record)
        if isinstance(event, Delivered | Settled):
            self.of_call.setdefault(event.call_id, []).append(record)
            if isinstance(event, Delivered):
                self.newest_call = (event.call_id,)
        else:
            self.general.append(record)
        for name in names(event):
            self.found_by.setdefault(name, set()).add(getattr(event, "call_id", ""))

    def calls(self, wanted_names: Iterable[tuple[str, str]]) -> set[str]:
        return set().union(*(self.found_by.get(name, ()) for name in wanted_names))


class MemoryStore:
    """A `Store` in lists."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._log: list[tuple[str, Record]] = []
        self._sessions: dict[str, list[Record]] = {}
        self._contexts: dict[tuple[str, str], _Context] = {}
        self._closed = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`."""
        with self._open():
            start = len(self._log)
            try:
                yield
            except BaseException:
                self._truncate(start)
                raise

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """See `Store.append`."""
        with self._open():
            start = len(self._log) + 1
            for seq, event in enumerate(events, start):
                self._add(session_id, Record(seq, agent_id, at, event))
            return len(self._log) if events else 0

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> list[Record]:
        """See `Store.records`."""
        with self._open():
            if agent_id is None:
                records = self._sessions.get(session_id, [])
            else:
                records = self._context(session_id, agent_id).records
            return records[bisect_right(records, after, key=lambda record: record.seq) :]

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> list[Record]:
        """See `Store.records_about`."""
        with self._open():
            context = self._context(session_id, agent_id)
            calls = context.calls(wanted(keys, digests))
            calls |= context.calls((SOURCE, call) for call in calls)
            calls.update(context.newest_call)
            found = [record for call in calls for record in context.of_call.get(call, ())]
            return sorted(found + context.general, key=lambda record: record.seq)

    def sessions(self) -> list[tuple[str, str, int, float]]:
        """See `Store.sessions`."""
        with self._open():
            items = sorted(self._contexts.items())
            return [(*names, context.own, context.last_at) for names, context in items if context.own]

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._closed = True

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise StoreError("the memory store was closed; open another session")
            yield

    def _context(self, session_id: str, agent_id: str) -> _Context:
        context = self._contexts.get((session_id, agent_id))
        if context is None:
            context = self._contexts[session_id, agent_id] = _Context()
            for record in self._sessions.get(session_id, ()):
                if isinstance(record.event, Wrote):
                    context.add(record)
        return context

    def _add(self, session_id: str, record: Record) -> None:
        context = self._context(session_id, record.agent_id)
        context.own += 1
        context.last_at = record.at
        self._log.append((session_id, record))
        self._sessions.setdefault(session_id, []).append(record)
        context.add(record)
        if isinstance(record.event, Wrote):
            for (session, agent), other in self._contexts.items():
                if session == session_id and agent != record.agent_id:
                    other.add(record)

    def _truncate(self, size: int) -> None:
        if len(self._log) == size:
            return
        kept = self._log[:size]
        self._log, self._sessions, self._contexts = [], {}, {}
        for session_id, record in kept:
            self._add(session_id, record)
