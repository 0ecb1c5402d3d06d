"""Where the log lives: one protocol, several stores, one conformance suite (tests/log/test_store_conformance.py).

A store keeps events in order and nothing else; what it projects from them can be rebuilt. `transaction` makes
read-judge-append one step, also between processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from readcache.errors import StoreError, UsageError
from readcache.model.events import Compacted, Event, Record

NOTHING_LEFT = Compacted(frozenset())  # of what stood before in a log
HELD_SECONDS = 30 * 86_400.0  # a process that was silent for so long holds no session any more
_SQLITE = "sqlite:///"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class StoreGone(StoreError):
    """The store is not where it was, and what was read of it says nothing any more: it has to be opened anew."""


class Store(Protocol):
    """Every method may raise `StoreError`, and nothing else."""

    def transaction(self) -> AbstractContextManager[None]:
        """Excludes every other writer of the store, in this process and in others, until it is left. Re-entrant.

        Left by an exception: nothing appended within it stays.
        """

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """Appends events in order, `at` seconds since the epoch; returns the last one's seq, 0 for none. Seqs grow.

        After a `Settled` that `erases`, a store that others can read no longer gives the texts that it replaces."""

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> Iterable[Record]:
        """The session's records with seq > after, in order: those of one context and every other context's `Wrote`
        (a sub-agent shares the disk), or, without `agent_id`, all of them."""

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> Iterable[Record]:
        """The subset of `records(session_id, agent_id)` that can matter to a judgement on `keys` and `digests`, in
        order: every event that is not a delivery; the deliveries that show one of the keys' paths or point into it,
        that showed it to have changed, whose text has one of the digests (`text.digest`), that point at such a text
        as a whole, that were rewound to, and the newest (it has the counters); with each of them, what else was
        delivered or settled under its call id.

        What the reader can no longer see may be left out, and what a compaction that kept nothing made immaterial: a
        view folded from this knows the same of these keys and digests as one folded from all. One indexed look-up."""

    def sessions(self) -> Iterable[tuple[str, str, int, float]]:
        """(session_id, agent_id, number of events, time of the last) for each context in the store."""

    def take_out(self, session_id: str, at: float) -> None:
        """Takes a session's events and texts out, `at` seconds since the epoch. What each of its readers then has is
        one event, `NOTHING_LEFT`: a process that still holds what was before must not count on it. A session that had
        nothing but that for `HELD_SECONDS` leaves no trace."""

    def close(self) -> None:
        """Releases what the store holds; closing twice is allowed."""


def open_store(spec: str | os.PathLike[str] | None) -> Store:
    """The store that `spec` names: None is memory; a path, or `sqlite:///` and a path, an SQLite file.

    A path is taken as it is but for a leading `~`: `sqlite:///a.db` is `a.db` in the working directory, and
    `sqlite:////var/a.db` is absolute. UsageError for any other URL, StoreError when the store cannot be opened.
    """
    if spec is None:
        from readcache.log.store.memory import MemoryStore

        return MemoryStore()
    path = os.fspath(spec)
    if path.startswith(_SQLITE):
        path = path[len(_SQLITE) :]
    elif _SCHEME.match(path):
        raise UsageError(f"unknown kind of store: {path!r}; give a path or {_SQLITE}PATH")
    if not path or "\0" in path:
        raise UsageError(f"the store {str(spec)!r} names no file; give a path or {_SQLITE}PATH")
    from readcache.log.store.sqlite import SqliteStore

    return SqliteStore(path)
