"""The parts that `doctor --fire` needs to run a host once with a scripted model on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class Scripted(NamedTuple):
    """How to run a host with another address of its API, and how to answer as that API.

    The host runs in a home directory of its own, so it has neither the user's settings nor a key.

    `answer(path, number, command)` returns the body of the answer to a request to that path. The answer calls the shell
    with that command, for the `number`th time. If the command is "", the answer ends the conversation.
    """

    words: tuple[str, ...]  # the program's name on PATH, and its arguments
    environment: Callable[[str], Mapping[str, str]]  # address -> environment variables besides HOME and PATH
    files: Callable[[str], Mapping[str, str]]  # address -> settings files: path below the home -> text
    result: str  # a text that a request has once for each tool result
    answer: Callable[[str, int, str], str]
    seconds: float = 0.0  # that the model takes for an answer, if readcache needs time in the host


def stream(events: Iterable[Json], last: str = "") -> str:
    """Return the events as a stream of server-sent events. `last`: text to append."""
    named = ((f"event: {event['type']}\n" if "type" in event else "", event) for event in events)
    return "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in named) + last


def chat_answer(_: str, number: int, command: str) -> str:
    """Return the answer (see `Scripted`) of hosts that use OpenAI's chat completions and have a shell tool named
    `bash`."""
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
