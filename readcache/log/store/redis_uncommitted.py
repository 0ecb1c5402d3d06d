"""What a transaction on a Redis store holds until it is committed, and what events do to it. Effects: random tags."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass, field
from typing import Any

from readcache.log.store.redis_rows import TAG_BITS, step_append
from readcache.model.errors import StoreError
from readcache.model.events import Delivered, Event, Record, Settled, Wrote
from readcache.model.withheld import withhold

Step = list[str | bytes]


@dataclass
class Uncommitted:
    """A transaction: its session, where the session ended when it was read, and the pending changes."""

    session_id: str
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    tag: int = field(default_factory=lambda: new_tag())
    end: tuple[int, bytes] | None = None  # the last event's number and tag; None before anything was read
    records: list[Record] = field(default_factory=list)
    erased: dict[int, tuple[Record, Step]] = field(default_factory=dict)  # number -> what is left, and how it is made
    clears: bool = False
    listed: dict[str, float] = field(default_factory=dict)  # reader -> when it was last put into a list

    def saved(self) -> tuple[Any, ...]:
        """What `restore` takes."""
        return list(self.records), dict(self.erased), self.clears

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Undoes what came after `saved`."""
        self.records, self.erased, self.clears = saved


def require_storable(agent_id: str, at: float, event: Event) -> None:
    """StoreError for what cannot be stored."""
    try:
        step_append(agent_id, at, event)
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise StoreError(f"a {type(event).__name__} cannot be stored: {error}") from error


def without_text(old: Event, settled: Settled) -> Delivered | Settled | None:
    """The rest of an event after `settled` says what was shown; None when nothing changes."""
    if not isinstance(old, Delivered | Settled) or old.call_id != settled.call_id:
        return None
    if old.origin is not settled.origin or not old.text:
        return None
    return withhold(old)


def is_given_to(record: Record, agent_id: str | None) -> bool:
    """True for what `Store.records` gives that reader; None for all."""
    return agent_id in (None, record.agent_id) or isinstance(record.event, Wrote)


def new_tag() -> int:
    """The tag of a commit: not 0."""
    return random.SystemRandom().randrange(1, 1 << TAG_BITS)
