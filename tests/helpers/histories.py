"""Histories for tests, in few words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from readcache.context import History
from readcache.log.store.codec import decode, encode
from readcache.model.history_events import Condensed, HistoryEvent, Item
from tests.helpers.chats import user


def items(*names: str) -> list[HistoryEvent]:
    return [Item(name, user(name)) for name in names]


def condensed(name: str, forgotten: str = "", summary: str | None = None, offset: int | None = None) -> Condensed:
    return Condensed(name, frozenset(forgotten.split()), summary, offset)


def history_of(events: Iterable[HistoryEvent]) -> History:
    """The history whose log this is."""
    history = History()
    for event in events:
        history.append(event)
    return history


def itemised(messages: list[Mapping[str, Any]]) -> History:
    return history_of(Item(f"m{n}", message) for n, message in enumerate(messages))


def through_json(event: HistoryEvent) -> HistoryEvent:
    """The event as another process reads it from a store."""
    kind, body, text = encode(event)
    read = decode(kind, json.loads(json.dumps(body)), text)
    assert isinstance(read, HistoryEvent)
    return read


def restart(history: History) -> History:
    """The history as another process builds it from what was stored."""
    return history_of(map(through_json, history.events))
