"""The tool `hook` of `readcache mcp`: what a host's hooks call where the server is connected, instead of a process."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from readcache import Mode, Sessions
from readcache.hosts import host_module

_JSON_PARTS = ("tool_input", "tool_response", "tool_calls")  # what a host may put into an event as JSON text


def hook_result(given: Mapping[str, Any], sessions: Sessions) -> dict[str, Any]:
    """The answer of the host's adapter to the event in these arguments, as the result of a tool. Whatever fails, it is
    one that changes nothing for the host."""
    answer: Mapping[str, Any] | None = None
    with contextlib.suppress(Exception):
        if sessions.policy.mode is not Mode.OFF:
            host = host_module(str(given["host"])).HOST
            sessions.host = host.name
            answer = host.hook(event_of(given), sessions)
    return {"content": [{"type": "text", "text": _as_json(answer)}]}


def _as_json(answer: Mapping[str, Any] | None) -> str:
    with contextlib.suppress(TypeError, ValueError):
        return json.dumps(answer or {}, allow_nan=False)
    return "{}"


def event_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The event in the arguments of `hook`: under "event", or beside "host"; as an object or as JSON text. A place that
    the host had nothing for is "" there: it is left out. ValueError when it is none."""
    event = given.get("event", {key: value for key, value in given.items() if key != "host"})
    event = json.loads(event) if isinstance(event, str) else event
    return {key: _decoded(value) if key in _JSON_PARTS else value for key, value in event.items() if value != ""}


def _decoded(value: Any) -> Any:
    """What the JSON text says, if it is that of an object or a list."""
    with contextlib.suppress(ValueError, TypeError):
        if isinstance(found := json.loads(value), dict | list):
            return found
    return value
