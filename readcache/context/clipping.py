"""Long texts cut in the middle: the head and the tail stay, as whole lines, and one line says how much is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from readcache.context import notes
from readcache.messages.editing import with_arguments, with_result_text, with_texts
from readcache.messages.messages import Kind, Part, normalise

# Characters: what mini-swe-agent's template shows of a longer output (5,000 of either end), as CooperBench's does.
MOST_CHARS = 10_000
NOTE_CHARS = 100  # room for the line that says what is gone


def clip(text: str, most: int, tag: str = "") -> str:
    """The text, or its two ends with a note between them: at most `most` characters in all, and at least the note.

    A line is cut only where it alone is longer than an end may be.
    """
    if len(text) <= most:
        return text
    each = max(0, most - NOTE_CHARS) // 2
    head, tail = _head(text, each), _tail(text, each)
    gone = text[len(head) : len(text) - len(tail)]
    lines = gone.count("\n") + (not gone.endswith("\n"))
    note = notes.lines_left_out(tag, lines, len(gone))
    return f"{head}{'' if head.endswith(chr(10)) or not head else chr(10)}{note}\n{tail}"


def _head(text: str, most: int) -> str:
    end = text.rfind("\n", 0, most) + 1
    return text[: end or most]


def _tail(text: str, most: int) -> str:
    start = len(text) - most
    end = text.find("\n", max(0, start - 1), len(text) - 1) + 1
    return text[end or start :]


def clip_messages(messages: Sequence[Mapping[str, Any]], most: int, tag: str = "") -> list[Mapping[str, Any]]:
    """The messages with no text in them longer than `most` characters: results, what is said, and each argument of a
    call, which stays valid JSON. A message that has no longer one is the same object."""
    out = list(messages)
    for message in normalise(messages):
        at = message.index
        for part in message.parts:
            if part.kind is Kind.RESULT and len(part.text) > most:
                out[at] = with_result_text(out[at], part.call_id, clip(part.text, most, tag))
            elif part.kind is Kind.CALL and (arguments := _clip_arguments(part, most, tag)) is not None:
                out[at] = with_arguments(out[at], part.call_id, arguments)
            elif part.kind is Kind.TEXT and len(part.text) > most:
                out[at] = with_texts(out[at], lambda text: clip(text, most, tag))
    return out


def _clip_arguments(call: Part, most: int, tag: str) -> dict[str, object] | None:
    given = call.arguments or {}
    long = {key: clip(value, most, tag) for key, value in given.items() if isinstance(value, str) and len(value) > most}
    return {**given, **long} if long else None
