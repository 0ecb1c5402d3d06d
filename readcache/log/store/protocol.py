"""The protocol of a store, which keeps events in order and does nothing else. Its indexes can be rebuilt from events.

`transaction` makes read-judge-append one step, also between processes. `MemoryStore` is the simplest store: it ends
with its process, for one session, for tests, for mocked file systems.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Compacted, Delivered, Event, Record, Wrote
from readcache.log.forks import STORES, ForkLock

NOTHING_LEFT = Compacted(frozenset())  # no earlier text of the log is visible
IN_USE_SECONDS = 30 * 86_400.0  # a process that was silent for this long is taken to use no session any more
SQLITE = "sqlite:///"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class StoreGone(StoreError):
    """The store was removed or replaced, so records read from it are void. Open it again."""


def is_url(spec: str) -> bool:
    """Return True for the URL of a server. A path is not one, nor is the `sqlite:///` URL of a file."""
    return not spec.startswith(SQLITE) and _SCHEME.match(spec) is not None


def without_password(spec: str) -> str:
    """Return a store's URL as it may be shown: without user, password and options. Return a path unchanged."""
    return re.sub(r"//[^/]*@", "//", spec).partition("?")[0] if is_url(spec) else spec


def is_given_to(record: Record, agent_id: str | None) -> bool:
    """Return True if `Store.records` gives that reader the record: its own, or a write by another reader. None stands
    for all readers."""
    return agent_id in (None, record.agent_id) or isinstance(record.event, Wrote)


def replaced(event: Event, amended: Amended) -> Delivered | Amended | None:
    """Return the event if `amended` replaces its text. Return None otherwise."""
    if not isinstance(event, Delivered | Amended) or event.call_id != amended.call_id:
        return None
    return event if event.origin is amended.origin and event.text else None


class Store(Protocol):
    """A store of events. Every method may raise `StoreError`, and no other error."""

    def transaction(self) -> AbstractContextManager[None]:
        """Exclude all other writers of the sessions used in it, in this process and in others, until it ends. A store
        may refuse to write to a second session within it.

        If an exception ends the transaction, nothing appended within it stays. A transaction within another is a part
        of that one. If an exception ends the inner transaction, the outer one may fail, too. It then raises
        `StoreError` at its end.
        """

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """Append events in order. Return the seq of the last one, or 0 if there are none. `at`: when they happened, in
        seconds since the epoch. Within a session seqs grow.

        After an `Amended` with `erases`, a store that others can read no longer returns the replaced texts.
        """

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> Iterable[Record]:
        """Return the session's records with seq > `after`, in order. With `agent_id`, these are that reader's records
        and every other reader's `Wrote`, because sub-agents share the disk. Without it, these are all records."""

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> Iterable[Record]:
        """Return the records of `records(session_id, agent_id)` that can matter to a judgement on `keys` and `digests`,
        or more of them, in order.

        These are all events except deliveries, and some deliveries:
        - deliveries that show a path of the keys, have a marker for it, or showed that it changed
        - deliveries whose text has one of the digests (`text.digest`), or with a marker for such a text as a whole
        - deliveries that the conversation was rewound to
        - the newest delivery, which has the counters
        - all other deliveries and amendments with the call IDs of these deliveries, and the last use of each ID before
          a compaction that kept nothing

        A store may omit records of texts that the reader can no longer see, and records from before a compaction that
        kept nothing. A view folded from the result knows as much about these keys and digests as a view folded from
        all records. A store that serves processes for a single call needs one indexed look-up.
        """

    def sessions(self, session_id: str | None = None) -> Iterable[tuple[str, str, int, float]]:
        """Return (session_id, agent_id, number of events, time of the last event) for each reader in the store, or for
        each reader of one session. Times are seconds since the epoch."""

    def take_out(self, session_id: str, at: float) -> None:
        """Remove a session's events and texts, `at` seconds since the epoch.

        Each of its readers then has one event, `NOTHING_LEFT`, because a process that has the old records in memory
        must not rely on them. A session that had only this event for `IN_USE_SECONDS` is removed completely.
        """
        with self.transaction():
            contexts = list(self.sessions(session_id))
            is_in_use = any(events > 1 or last > at - IN_USE_SECONDS for _, _, events, last in contexts) or any(
                record.event != NOTHING_LEFT for record in self.records(session_id)
            )
            self.drop(session_id)
            for _, agent_id, *_ in contexts if is_in_use else ():
                self.append(session_id, agent_id, [NOTHING_LEFT], at)

    def drop(self, session_id: str) -> None:
        """Remove a session completely, with its events and texts. `take_out` calls it within a transaction."""

    def rewrite(self, session_id: str, changes: Sequence[tuple[Record, Event]]) -> None:
        """Store another event of the same class instead of each record's event, within a transaction. The new event
        shows no more than the old one. A store that others can read no longer returns the old texts.

        Raise StoreError if the store cannot do this, as the store in memory cannot."""
        todo = "delete the session with `readcache clear`"
        raise StoreError(f"cannot rewrite {len(changes)} events of {session_id} in this kind of store: {todo}")

    def close(self) -> None:
        """Release the store's resources. Closing twice is allowed."""


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
