"""What `doctor --fire` needs to run a host once with a scripted model on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class Scripted(NamedTuple):
    """How to run a host that takes the address of its API, and how to answer as that API. The host runs in a home
    directory of its own, so it has neither the user's settings nor a key.

    `answer(path, number, command)`: the body of the answer to a request to that path. It calls the shell with that
    command, for the `number`th time; with "" it ends the conversation."""

    words: tuple[str, ...]  # the program, as PATH has it, and its options
    environment: Callable[[str], Mapping[str, str]]  # of the address: variables beside HOME and PATH
    files: Callable[[str], Mapping[str, str]]  # of the address: texts of settings, by their path below the home
    result: str  # how a request says that something is a tool's result: it has this once for each
    answer: Callable[[str, int, str], str]
    seconds: float = 0.0  # that the model takes for an answer, where the host does something of ours meanwhile


def stream(events: Iterable[Json], last: str = "") -> str:
    """Server-sent events."""
    named = ((f"event: {event['type']}\n" if "type" in event else "", event) for event in events)
    return "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in named) + last


def chat_answer(_: str, number: int, command: str) -> str:
    """`answer` of hosts that take the chat completions of OpenAI and whose shell tool is `bash`."""
    function = {"name": "bash", "arguments": json.dumps({"command": command, "description": "look"})}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    said: Json = {"tool_calls": [call]} if command else {"content": "done"}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    choices: list[list[Json]] = [
        [{"index": 0, "delta": {"role": "assistant", **said}, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if command else "stop"}],
        [],
    ]
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "model"}
    return stream(
        ({**chunk, "choices": one, **({} if one else {"usage": usage})} for one in choices), "data: [DONE]\n\n"
    )
