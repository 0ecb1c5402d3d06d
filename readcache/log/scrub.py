"""Remove texts from the logs of a store: certain secrets and lines of protected files, or the texts of named calls."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from readcache.core.judging.removal import Change, removals
from readcache.core.model.events import Amended, Delivered, Forgot, Record
from readcache.core.model.policy import Policy
from readcache.log.store import Store


def scrub(store: Store, session_id: str, policy: Policy, named: AbstractSet[str] = frozenset()) -> int:
    """Remove from a session what `removals` finds. Return the number of calls that changed. Raise StoreError.

    The calls leave the view of every process, because a view may have their texts in memory. A kill leaves the session
    either as it was or without the texts.
    """
    if not _changes(list(store.records(session_id)), policy, named):  # usually: other writers do not wait for this
        return 0
    with store.transaction():
        records = list(store.records(session_id))
        found = _changes(records, policy, named)
        store.rewrite(session_id, [change for changes in found.values() for change in changes])
        for agent, changes in found.items():
            texts = frozenset(r.event.call_id for r, _ in changes if isinstance(r.event, (Delivered, Amended)))
            if texts:  # at the time of the last event, so that the session expires when it would have
                store.append(session_id, agent, [Forgot(texts, doubted=True, erased=True)], records[-1].at)
    return len({(agent, getattr(r.event, "call_id", "")) for agent, changes in found.items() for r, _ in changes})


def scrub_all(store: Store, policy: Policy) -> list[int]:
    """Do this for all sessions of a store. Return the number of calls for each session that changed. Raise
    StoreError."""
    counts = [scrub(store, session_id, policy) for session_id in dict.fromkeys(name for name, *_ in store.sessions())]
    return [count for count in counts if count]


def _changes(records: list[Record], policy: Policy, named: AbstractSet[str]) -> dict[str, list[Change]]:
    """Return the changes by reader, without the readers that have none."""
    agents = dict.fromkeys(record.agent_id for record in records)
    found = {agent: removals([r for r in records if r.agent_id == agent], policy, named) for agent in agents}
    return {agent: changes for agent, changes in found.items() if changes}
