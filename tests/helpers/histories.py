"""Histories for tests, in few words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from readcache.context import Condensed, History, Item
from readcache.log.store.codec import decode, encode
from readcache.model.history_events import HistoryEvent
from tests.helpers.chats import user


def items(*names: str) -> list[HistoryEvent]:
    return [Item(name, user(name)) for name in names]


def condensed(name: str, forgotten: str = "", summary: str | None = None, offset: int | None = None) -> Condensed:
    return Condensed(name, frozenset(forgotten.split()), summary, offset)


def itemised(messages: list[Mapping[str, Any]]) -> History:
    return History.from_events(Item(f"m{n}", message) for n, message in enumerate(messages))


def through_json(event: HistoryEvent) -> HistoryEvent:
    """The event as another process reads it from a store."""
    kind, body, text = encode(event)
    read = decode(kind, json.loads(json.dumps(body)), text)
    assert isinstance(read, HistoryEvent)
    return read


def restart(history: History) -> History:
    """The history as another process builds it from what was stored."""
    return History.from_events(map(through_json, history.events))
