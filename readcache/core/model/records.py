"""The events of a session's records that concern one of its readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from readcache.core.model.events import Delivered, Event, Failed, Record, Wrote
from readcache.core.model.tokens import CountByChars, chars_per_token


def event_for(record: Record, agent_id: str) -> Event | None:
    """Return the record's event as the reader `agent_id` takes it; None if it does not concern this reader. Another
    reader's write concerns it, because all readers share one disk. That event loses its call ID, because the call is
    not this reader's."""
    if record.agent_id == agent_id:
        return record.event
    return replace(record.event, call_id="") if isinstance(record.event, Wrote) else None


UNREADABLE = "in the store cannot be read"


def unreadable_events(records: Iterable[Record]) -> Iterator[str]:
    """Yield a store's reports of events that it could not read."""
    for record in records:
        event = record.event
        if isinstance(event, Failed) and event.detail.startswith(f"event {record.seq} {UNREADABLE}"):
            yield event.detail


def events_for(records: Iterable[Record], agent_id: str) -> Iterator[Event]:
    """Yield the events of one reader, and the writes of the session's other readers."""
    return (event for record in records if (event := event_for(record, agent_id)) is not None)


def counter_of(records: Iterable[Record], agent_id: str) -> CountByChars:
    """Return what counts the tokens of a reader's texts: by the model that asked last, if it is known."""
    own = (record.event for record in records if record.agent_id == agent_id)
    accounts = [event.account for event in own if isinstance(event, Delivered) and event.account]
    return CountByChars(chars_per_token(accounts[-1].model, accounts[-1].host)) if accounts else CountByChars()
