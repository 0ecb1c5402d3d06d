"""The protocol of a store, which keeps events in order and does nothing else. Its indexes can be rebuilt from events.

`transaction` makes read-judge-append one step, also between processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Compacted, Delivered, Event, Record, Wrote

NOTHING_LEFT = Compacted(frozenset())  # no earlier text of the log is visible
IN_USE_SECONDS = 30 * 86_400.0  # a process that was silent for this long is taken to use no session any more


class StoreGone(StoreError):
    """The store was removed or replaced, so records read from it are void. Open it again."""


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
        - all other deliveries and amendments with the call IDs of these deliveries

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

    def close(self) -> None:
        """Release the store's resources. Closing twice is allowed."""
