"""Long texts cut in the middle: the head and the tail stay, as whole lines, and one line says how much is gone."""

from __future__ import annotations

from collections.abc import Sequence

from readcache.context import notes
from readcache.messages.editing import with_arguments, with_result_text, with_texts
from readcache.messages.messages import Kind, Message, Part, Raw, update

# Characters: what mini-swe-agent's template shows of a longer output (5,000 of either end), as CooperBench's does.
MOST_CHARS = 10_000
NOTE_CHARS = 100  # room for the line that says what is gone


def clip_text(text: str, most: int, tag: str = "") -> str:
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


def clip_messages(messages: Sequence[Message], most: int, tag: str = "") -> list[Message]:
    """The messages with no text in them longer than `most` characters: results, what is said, and each argument of a
    call, which stays valid JSON. A message without such a text is the same object."""
    return [update(message, _clip_message(message, most, tag)) for message in messages]


def _clip_message(message: Message, most: int, tag: str) -> Raw:
    raw: Raw = message.raw
    for part in message.parts:
        if part.kind is Kind.RESULT and len(part.text) > most:
            raw = with_result_text(raw, part.call_id, clip_text(part.text, most, tag))
        elif part.kind is Kind.CALL and (arguments := _clip_arguments(part, most, tag)) is not None:
            raw = with_arguments(raw, part.call_id, arguments)
        elif part.kind is Kind.TEXT and len(part.text) > most:
            raw = with_texts(raw, lambda text: clip_text(text, most, tag))
    return raw


def _clip_arguments(call: Part, most: int, tag: str) -> dict[str, object] | None:
    given = call.arguments or {}
    long = {key: text for key, text in given.items() if isinstance(text, str) and len(text) > most}
    return {**given, **{key: clip_text(text, most, tag) for key, text in long.items()}} if long else None
