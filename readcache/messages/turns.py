"""Turns: what the model said at once, and everything up to when it speaks again.

A turn begins with the assistant, not with the user: an agent at work by itself has one user message and many turns, and
a border at the last user message would protect all of them or none.
"""

from __future__ import annotations

from collections.abc import Sequence

from readcache.messages.messages import Message


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """The indexes at which turns begin. Adjacent messages of the assistant are one answer: the Responses API has one
    item for each of its calls."""
    return [
        message.index
        for message in messages
        if message.role == "assistant" and (message.index == 0 or messages[message.index - 1].role != "assistant")
    ]


def last_turns(messages: Sequence[Message], count: int) -> int:
    """The index at which the last `count` turns begin; 0 when there are no more than these."""
    if count <= 0:
        return len(messages)
    starts = turn_starts(messages)
    return starts[-count] if len(starts) > count else 0
