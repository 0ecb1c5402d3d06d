"""Sessions whose log is looked at afterwards, as `readcache gain` does."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from readcache import Session
from readcache.cli.output import table_lines
from readcache.log.store import Store
from readcache.report.gain import WIDTH, gain_table
from readcache.report.totals import Asked, Gain

DAY = 86_400.0
NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.timezone.utc).timestamp()


def day_of(at: float) -> datetime.date:
    """In UTC, so that no test depends on where it runs."""
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).date()


class Clock:
    """It stands still until somebody sets it."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def asked(since: float | None = None, until: float | None = None) -> Asked:
    """On 20 November 2026."""
    return Asked(day_of, day_of(NOON), since, until)


def gain_of(store: Store, question: Asked | None = None, only: Iterable[tuple[str, str]] = ()) -> Gain:
    """What the store says: of all its readers, or of some."""
    found, wanted = Gain(question or asked()), set(only)
    for session, agent, *_ in store.sessions():
        if not wanted or (session, agent) in wanted:
            found.add_reader(session, agent, store.records(session, agent))
    return found


def printed(gain: Gain, *, width: int = WIDTH, **how: Any) -> list[str]:
    """The lines of the table, as they are without rich."""
    out = list[str]()
    for part in gain_table(gain, width=width, **how):
        out += [part] if isinstance(part, str) else [line for line, _ in table_lines(part, width)]
    return out


def counters(gain: Gain) -> dict[str, int]:
    """Those that are not 0."""
    return {name: count for name, count in gain.total.counts.items() if count}


def stats(session: Session) -> dict[str, int]:
    """Those of the session that are not 0."""
    return {name: count for name, count in session.stats().items() if count}


def numbered(count: int, what: str = "a line of some length") -> str:
    """A file of so many lines."""
    return "".join(f"{number}: {what}, with a few words behind it\n" for number in range(1, count + 1))
