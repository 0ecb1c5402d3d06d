"""The store that lives and dies with its process: for one session, for tests, for mocked file systems."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from readcache.disk.forks import STORES, ForkLock
from readcache.log.store.codec import SOURCE, names, wanted
from readcache.log.store.protocol import HELD_SECONDS, NOTHING_LEFT
from readcache.model.errors import StoreError
from readcache.model.events import Delivered, Event, Record, Settled, Wrote


class _Transaction:
    """See `Store.transaction`. Written out because a generator-made context costs three times as much."""

    __slots__ = ("_seq", "_store")

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store._lock.acquire()
        try:
            self._store._require_open()
        except StoreError:
            self._store._lock.release()
            raise
        self._seq = self._store._seq

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None:
                self._store._truncate(self._seq)
        finally:
            self._store._lock.release()


class MemoryStore:
    """A `Store` in lists. It keeps no index of what a look-up by name needs: `records_about` reads the whole context,
    which only a process that judges a single call asks for, and such a process has little in memory."""

    def __init__(self) -> None:
        self._lock = ForkLock(STORES)
        self._seq = 0
        self._sessions: dict[str, list[Record]] = {}
        self._contexts: dict[tuple[str, str], list[Record]] = {}  # with what other contexts of the session wrote
        self._closed = False

    def transaction(self) -> AbstractContextManager[None]:
        """See `Store.transaction`."""
        return _Transaction(self)

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """See `Store.append`."""
        with self._lock:
            self._require_open()
            for event in events:
                self._seq += 1
                self._add(session_id, Record(self._seq, agent_id, at, event))
            return self._seq if events else 0

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> list[Record]:
        """See `Store.records`."""
        with self._lock:
            self._require_open()
            own = self._sessions.get(session_id, [])
            records = own if agent_id is None else self._context(session_id, agent_id)
            if not records or records[-1].seq <= after:  # as before nearly every call
                return []
            return records[_place_after(records, after) :]

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> list[Record]:
        """See `Store.records_about`."""
        with self._lock:
            self._require_open()
            records = self._context(session_id, agent_id)
            named = {(call, name) for record in records for call, name in _names(record)}
            names_wanted = wanted(keys, digests)
            calls = {call for call, name in named if name in names_wanted}
            sources = {(SOURCE, call) for call in calls}
            calls |= {call for call, name in named if name in sources}
            newest = next((r.event.call_id for r in reversed(records) if isinstance(r.event, Delivered)), None)
            return [
                r
                for r in records
                if not isinstance(r.event, Delivered | Settled) or r.event.call_id in calls or r.event.call_id == newest
            ]

    def sessions(self, session_id: str | None = None) -> list[tuple[str, str, int, float]]:
        """See `Store.sessions`."""
        with self._lock:
            self._require_open()
            found: list[tuple[str, str, int, float]] = []
            for (session, agent_id), records in sorted(self._contexts.items()):
                own = [record.at for record in records if record.agent_id == agent_id]
                if own and session_id in (None, session):
                    found.append((session, agent_id, len(own), own[-1]))
            return found

    def take_out(self, session_id: str, at: float) -> None:
        """See `Store.take_out`."""
        with self._lock:
            self._require_open()
            records = self._sessions.pop(session_id, [])
            is_held = any(r.event != NOTHING_LEFT or r.at > at - HELD_SECONDS for r in records)
            agents = dict.fromkeys(record.agent_id for record in records if is_held)
            for context in [context for context in self._contexts if context[0] == session_id]:
                del self._contexts[context]
            for agent_id in agents:
                self.append(session_id, agent_id, [NOTHING_LEFT], at)

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("the memory store was closed; open another session")

    def _context(self, session_id: str, agent_id: str) -> list[Record]:
        """What one reader's view is folded from."""
        context = self._contexts.get((session_id, agent_id))
        if context is None:
            context = [r for r in self._sessions.get(session_id, ()) if isinstance(r.event, Wrote)]
            self._contexts[session_id, agent_id] = context
        return context

    def _add(self, session_id: str, record: Record) -> None:
        self._context(session_id, record.agent_id).append(record)
        self._sessions.setdefault(session_id, []).append(record)
        if isinstance(record.event, Wrote):
            for (session, agent), other in self._contexts.items():
                if session == session_id and agent != record.agent_id:
                    other.append(record)

    def _truncate(self, seq: int) -> None:
        """Forgets everything after `seq`."""
        for records in (*self._sessions.values(), *self._contexts.values()):
            del records[_place_after(records, seq) :]


def _place_after(records: list[Record], seq: int) -> int:
    return bisect_right(records, seq, key=lambda record: record.seq)


def _names(record: Record) -> Iterator[tuple[str, tuple[str, str]]]:
    call_id = getattr(record.event, "call_id", "")
    return ((call_id, name) for name in names(record.event))
