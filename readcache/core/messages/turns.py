"""Turns: a response of the model, and everything up to its next one.

A *response* is what the model said at once: adjacent messages of the assistant, because some harnesses and OpenAI's
Responses API write one message for each of its blocks. A turn begins with the assistant and not with the user: an agent
at work by itself has one user message and many turns, and a border at the last user message would protect all of them
or none.
"""

from __future__ import annotations

from collections.abc import Sequence

from readcache.core.messages.messages import Kind, Message


def is_response(message: Message) -> bool:
    """True for a message of the model, by its role or by what is in it."""
    return message.role == "assistant" or any(part.kind in (Kind.CALL, Kind.THINKING) for part in message.parts)


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """The indexes at which responses, and with them turns, begin."""
    starts, was_response = [], False
    for index, message in enumerate(messages):
        if is_response(message) and not was_response:
            starts.append(index)
        was_response = is_response(message)
    return starts


def last_turns(messages: Sequence[Message], count: int) -> int:
    """The index at which the last `count` turns begin; 0 when there are no more than these."""
    if count <= 0:
        return len(messages)
    starts = turn_starts(messages)
    return starts[-count] if len(starts) > count else 0
