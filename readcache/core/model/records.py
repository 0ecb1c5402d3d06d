"""What a session's records say to one of its readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from readcache.core.model.events import Event, Failed, Record, Wrote


def event_for(record: Record, agent_id: str) -> Event | None:
    """The record's event as the reader `agent_id` takes it. Of another reader's events that is a write alone, since
    both have one disk; and it is not a call of this reader's."""
    if record.agent_id == agent_id:
        return record.event
    return replace(record.event, call_id="") if isinstance(record.event, Wrote) else None


UNREADABLE = "in the store cannot be read"


def unreadable_events(records: Iterable[Record]) -> Iterator[str]:
    """What a store says of those that it could not read."""
    for record in records:
        event = record.event
        if isinstance(event, Failed) and event.detail.startswith(f"event {record.seq} {UNREADABLE}"):
            yield event.detail


def events_for(records: Iterable[Record], agent_id: str) -> Iterator[Event]:
    """What happened to one reader, and what the session's other readers wrote."""
    return (event for record in records if (event := event_for(record, agent_id)) is not None)
