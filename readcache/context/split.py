"""Split a conversation for a compaction: the part that always stays, the old turns to summarise, the turns to keep."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from readcache.context import summary
from readcache.core.messages.blocks import as_mapping
from readcache.core.messages.editing import as_blocks, with_blocks
from readcache.core.messages.messages import Kind, Message
from readcache.core.messages.structure import cut_points, last_turns

OWN_HEADINGS = (summary.HEADING, summary.RESTORED_HEADING)


@dataclass(frozen=True, slots=True)
class Split:
    """A conversation in its parts.

    `head`: the messages before the first turn: instructions and the task. `summaries`: texts of earlier compactions,
    oldest first. `restored`: the text that they restored. `old`: the messages to summarise. `kept`: the messages that
    stay, from message `split_at` of the list on.
    """

    head: list[Message]
    summaries: list[str]
    restored: str
    old: list[Message]
    kept: list[Message]
    split_at: int


def split_turns(messages: Sequence[Message], keep_turns: int) -> Split:
    """Split the messages so that the last `keep_turns` turns are kept.

    If the list may not be cut there, more turns are kept. If it may not be cut anywhere before, fewer are kept. A
    restored section of an earlier compaction is recognised by its heading. Its text is in `restored` only.
    """
    head: list[Message] = []
    sections: list[str] = []  # summaries and restored texts
    since: list[Message] = []  # the user's words after a summary in the same message
    was_compacted = False
    first = 0
    for message in messages:
        own = [p.text for p in message.parts if p.kind is Kind.TEXT and p.text.startswith(OWN_HEADINGS)]
        if message.role == "assistant" or (was_compacted and not own):
            break
        first += 1
        if not own:
            head.append(message)
            continue
        was_compacted = True
        sections += own
        blocks = as_blocks(message.raw)
        is_own = [(as_mapping(block) or {}).get("text") in own for block in blocks]
        at = is_own.index(True)
        head += _with_content(message, blocks[:at])
        since += _with_content(message, [blocks[k] for k in range(at, len(blocks)) if not is_own[k]])
    split_at = _find_split(messages, first, keep_turns)
    old = [*since, *messages[first:split_at]] if split_at > first else []
    summaries = [text for text in sections if text.startswith(summary.HEADING)]
    restored = "".join(text for text in sections if text not in summaries)
    return Split(head, summaries, restored, old, list(messages[split_at:]), split_at)


def _with_content(message: Message, blocks: list[Any]) -> list[Message]:
    """Return the message with only these blocks, as a list; [] if there are no blocks."""
    return [message.with_raw(with_blocks(message.raw, blocks))] if blocks else []


def _find_split(messages: Sequence[Message], first: int, keep_turns: int) -> int:
    unanswered = len(messages)
    while unanswered > first and _is_plain_user(messages[unanswered - 1]):
        unanswered -= 1
    border = max(first, min(unanswered, last_turns(messages, keep_turns)))
    points = cut_points(messages)
    below = points[bisect_right(points, border) - 1]
    if below > first or border == first:
        return max(below, first)
    return next((point for point in points if point >= border), first)


def _is_plain_user(message: Message) -> bool:
    return message.role == "user" and all(
        p.kind in (Kind.TEXT, Kind.IMAGE) and p.call_id is None for p in message.parts
    )
