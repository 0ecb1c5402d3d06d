"""Find and remove the sessions that a store need not keep. A session is kept as long as something happens in it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from readcache.log.store import NOTHING_LEFT, Store

if TYPE_CHECKING:
    from readcache.log.store.sqlite import SqliteStore

DAY = 86_400.0
KEEP_SECONDS = 30 * DAY  # as long as Claude Code keeps a conversation that could be resumed (its cleanupPeriodDays)
KEEP_BYTES = 1_000_000_000  # some 1,000 long sessions, by tests/benchmarks/memory.py


def last_events(contexts: Iterable[tuple[str, str, int, float]]) -> dict[str, float]:
    """Return {session: time of its last event in seconds since the epoch}, oldest first. `contexts`: as
    `Store.sessions` returns them."""
    last: dict[str, float] = {}
    for session, _, _, at in contexts:
        last[session] = max(at, last.get(session, at))
    return dict(sorted(last.items(), key=lambda item: item[1]))


def has_content(store: Store, session: str) -> bool:
    """Return False for a session that was removed and has no newer events."""
    return any(record.event != NOTHING_LEFT for record in store.records(session))


def outlived(store: SqliteStore, now: float, keep_seconds: float, keep_bytes: float = KEEP_BYTES) -> Iterator[str]:
    """Yield the sessions to remove, oldest first: the sessions idle for `keep_seconds`, then more until the store uses
    at most `keep_bytes`. The caller removes each session before it asks for the next."""
    for session, last in last_events(store.sessions()).items():
        if last < now - keep_seconds or (store.used_bytes() > keep_bytes and has_content(store, session)):
            yield session


def tidy(store: SqliteStore, now: float, keep_seconds: float, *, patience: float) -> bool:
    """Remove the sessions that were kept for long enough. Return False if `patience` seconds did not suffice."""
    began = time.monotonic()
    for session in outlived(store, now, keep_seconds):
        if time.monotonic() - began > patience:
            return False
        store.take_out(session, now)
    return True
