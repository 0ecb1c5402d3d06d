"""Turns: a response of the model, and everything up to its next one.

A *response* is one answer of the model. It may consist of several adjacent messages of the assistant, because some
harnesses and OpenAI's Responses API write one message for each block.

A turn begins with the assistant and not with the user. An agent that works alone has one user message and many turns. A
border at the last user message would protect all of these turns or none.
"""

from __future__ import annotations

from collections.abc import Sequence

from readcache.core.messages.messages import Kind, Message


def is_response(message: Message) -> bool:
    """Return True for a message of the model, by its role or by its parts."""
    return message.role == "assistant" or any(part.kind in (Kind.CALL, Kind.THINKING) for part in message.parts)


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes at which responses, and with them turns, begin."""
    starts, was_response = [], False
    for index, message in enumerate(messages):
        if is_response(message) and not was_response:
            starts.append(index)
        was_response = is_response(message)
    return starts


def last_turns(messages: Sequence[Message], count: int) -> int:
    """Return the index at which the last `count` turns begin; 0 if there are at most `count` turns."""
    if count <= 0:
        return len(messages)
    starts = turn_starts(messages)
    return starts[-count] if len(starts) > count else 0
