"""Message lists from a short script, in the shape of an API.

`chat(shape, "u t1,2 r1 r2 s")`: the user speaks; the model thinks and makes the calls 1 and 2 at once; their results;
the model says something. `c1` calls without thinking, `e1` is a result that is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Raw = dict[str, Any]
SHAPES = ("openai", "anthropic")


def chat(shape: str, script: str) -> list[Mapping[str, Any]]:
    """The messages of a script, one for each of its words."""
    write = {"openai": _openai, "anthropic": _anthropic}[shape]
    return [write(word[0], word[1:].split(","), f"{word} at {place}") for place, word in enumerate(script.split())]


def _openai(what: str, ids: list[str], text: str) -> Raw:
    if what in "re":
        return {"role": "tool", "tool_call_id": ids[0], "content": text}
    if what in "us":
        return {"role": "user" if what == "u" else "assistant", "content": text}
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    thinking = {"reasoning_content": "hm"} if what == "t" else {}
    return {"role": "assistant", "content": None, "tool_calls": calls, **thinking}


def _anthropic(what: str, ids: list[str], text: str) -> Raw:
    if what in "re":
        block = {"type": "tool_result", "tool_use_id": ids[0], "content": text, "is_error": what == "e"}
        return {"role": "user", "content": [block]}
    if what in "us":
        return {"role": "user" if what == "u" else "assistant", "content": text}
    calls = [{"type": "tool_use", "id": call_id, "name": "bash", "input": {"command": "ls"}} for call_id in ids]
    thinking = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}] if what == "t" else []
    return {"role": "assistant", "content": [*thinking, *calls]}


def calls_and_results(messages: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """("call" or "result", its id) for each, in order: read from the raw messages, independent of `normalise`."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            yield "call", call["id"]
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                yield "call", block["id"]
            elif block["type"] == "tool_result":
                yield "result", block["tool_use_id"]


def is_sendable(messages: list[Mapping[str, Any]]) -> bool:
    """Has every call exactly one result after it, and every result a call, as both APIs demand?"""
    waiting: list[str] = []
    for kind, call_id in calls_and_results(messages):
        if kind == "call":
            waiting.append(call_id)
        elif call_id in waiting:
            waiting.remove(call_id)
        else:
            return False
    return not waiting
