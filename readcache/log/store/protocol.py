"""What a store must do: keep events in order, and nothing else. What it projects from them can be rebuilt.

`transaction` makes read-judge-append one step, also between processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Compacted, Delivered, Event, Record, Wrote

NOTHING_LEFT = Compacted(frozenset())  # of what stood before in a log
IN_USE_SECONDS = 30 * 86_400.0  # a process that was silent for so long holds no session any more


class StoreGone(StoreError):
    """The store was removed or replaced, so what was read from it is void. Open it again."""


def is_given_to(record: Record, agent_id: str | None) -> bool:
    """True for a record that `Store.records` gives to that reader: its own, and what others wrote. None: to all."""
    return agent_id in (None, record.agent_id) or isinstance(record.event, Wrote)


def replaced(event: Event, amended: Amended) -> Delivered | Amended | None:
    """The event, if `amended` says what was finally shown for its text."""
    if not isinstance(event, Delivered | Amended) or event.call_id != amended.call_id:
        return None
    return event if event.origin is amended.origin and event.text else None


class Store(Protocol):
    """Every method may raise `StoreError`, and nothing else."""

    def transaction(self) -> AbstractContextManager[None]:
        """Excludes all other writers of the sessions used in it, in this process and in others, until it is left. A
        store may refuse to write to a second session within it.

        Left by an exception: nothing appended within it stays. One within another belongs to that one: left by an
        exception, it may take the outer one with it, which then raises `StoreError` at its end.
        """

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """Appends events in order, `at` seconds since the epoch; returns the last one's seq, 0 for none. Within
        a session seqs grow.

        After a `Amended` that `erases`, a store that others can read no longer gives the texts that it replaces."""

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> Iterable[Record]:
        """The session's records with seq > after, in order: those of one context and every other context's `Wrote`
        (a sub-agent shares the disk), or, without `agent_id`, all of them."""

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> Iterable[Record]:
        """Those of `records(session_id, agent_id)` that can matter to a judgement on `keys` and `digests`, or more of
        them, in order: every event except deliveries; and of the deliveries those that show a path of the keys, point
        into it or showed that it changed; those whose text has one of the digests (`text.digest`) or that point at such
        a text as a whole; those that were rewound to; and the newest, which has the counters. Everything else delivered
        or settled under their call ids is included.

        What the reader can no longer see may be left out, and what a compaction that kept nothing made immaterial: a
        view folded from this knows the same of these keys and digests as one folded from all. One indexed look-up,
        where processes that judge a single call use the store."""

    def sessions(self, session_id: str | None = None) -> Iterable[tuple[str, str, int, float]]:
        """(session_id, agent_id, number of events, time of the last) for each context in the store, or of a session."""

    def take_out(self, session_id: str, at: float) -> None:
        """Takes a session's events and texts out, `at` seconds since the epoch. What each of its readers then has is
        one event, `NOTHING_LEFT`: a process that still holds what was before must not count on it. A session that had
        nothing but that for `IN_USE_SECONDS` leaves no trace."""
        with self.transaction():
            contexts = list(self.sessions(session_id))
            is_in_use = any(events > 1 or last > at - IN_USE_SECONDS for _, _, events, last in contexts) or any(
                record.event != NOTHING_LEFT for record in self.records(session_id)
            )
            self.drop(session_id)
            for _, agent_id, *_ in contexts if is_in_use else ():
                self.append(session_id, agent_id, [NOTHING_LEFT], at)

    def drop(self, session_id: str) -> None:
        """Takes a session's events and texts out, and leaves nothing; within a transaction, for `take_out`."""

    def close(self) -> None:
        """Releases what the store holds; closing twice is allowed."""
