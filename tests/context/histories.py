"""Histories for tests, in few words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from readcache.context.history import Condensed, History, HistoryEvent, Item, from_dict, to_dict


def user(text: str) -> Mapping[str, Any]:
    return {"role": "user", "content": text}


def items(*names: str) -> list[HistoryEvent]:
    return [Item(name, user(name)) for name in names]


def condensed(name: str, forgotten: str = "", summary: str | None = None, offset: int | None = None) -> Condensed:
    return Condensed(name, frozenset(forgotten.split()), summary, offset)


def numbered(messages: list[Mapping[str, Any]]) -> History:
    return History.from_events(Item(f"m{n}", message) for n, message in enumerate(messages))


def restart(history: History) -> History:
    """The history as another process builds it from what was stored."""
    lines = [json.dumps(to_dict(event)) for event in history.events]
    return History.from_events(from_dict(json.loads(line)) for line in lines)
