"""The store that ends with its process: for one session, for tests, for mocked file systems."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Event, Record
from readcache.log.forks import STORES, ForkLock
from readcache.log.store.protocol import Store, is_given_to


class MemoryStore(Store):
    """A `Store` in lists. It has no index, because no process that judges a single call has its store in memory."""

    def __init__(self) -> None:
        self._lock = ForkLock(STORES)
        self._seq = 0
        self._sessions: dict[str, list[Record]] = {}
        self._closed = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`."""
        with self._lock:
            self._require_open()
            seq = self._seq
            try:
                yield
            except BaseException:
                self._truncate(seq)
                raise

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """See `Store.append`."""
        with self._lock:
            self._require_open()
            records = self._sessions.setdefault(session_id, [])
            for event in events:
                self._seq += 1
                records.append(Record(self._seq, agent_id, at, event))
            return self._seq if events else 0

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> list[Record]:
        """See `Store.records`."""
        with self._lock:
            self._require_open()
            records = self._sessions.get(session_id, [])
            if not records or records[-1].seq <= after:  # the usual case before a call
                return []
            return [record for record in records[_index_after(records, after) :] if is_given_to(record, agent_id)]

    def records_about(self, session_id: str, agent_id: str, *_: Iterable[str]) -> list[Record]:
        """See `Store.records_about`."""
        return self.records(session_id, agent_id)

    def sessions(self, session_id: str | None = None) -> list[tuple[str, str, int, float]]:
        """See `Store.sessions`."""
        with self._lock:
            self._require_open()
            found: dict[tuple[str, str], tuple[int, float]] = {}
            for session, records in self._sessions.items():
                for record in records if session_id in (None, session) else ():
                    count, _ = found.get((session, record.agent_id), (0, 0.0))
                    found[session, record.agent_id] = (count + 1, record.at)
            return [(*context, *size) for context, size in sorted(found.items())]

    def drop(self, session_id: str) -> None:
        """See `Store.drop`."""
        self._sessions.pop(session_id, None)

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError("the memory store was closed; open another session")

    def _truncate(self, seq: int) -> None:
        """Remove all records after `seq`."""
        for records in self._sessions.values():
            del records[_index_after(records, seq) :]


def _index_after(records: list[Record], seq: int) -> int:
    return bisect_right(records, seq, key=lambda record: record.seq)
