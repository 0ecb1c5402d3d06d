"""The parts of a conversation at a compaction: what always stays, what is summarised, what is kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from readcache.context import summary
from readcache.core.messages.blocks import as_mapping
from readcache.core.messages.editing import as_blocks, with_blocks
from readcache.core.messages.messages import Kind, Message, normalise_one
from readcache.core.messages.structure import cut_points
from readcache.core.messages.turns import last_turns

OWN_HEADINGS = (summary.HEADING, summary.RESTORED_HEADING)


@dataclass(frozen=True, slots=True)
class Split:
    """A conversation in its parts.

    `head`: what stands before the first turn, instructions and task. `summaries`: of earlier compactions, oldest first;
    `restored`: the text of what they put back. `old` is to be summarised, `kept` stays and begins at
    message `split_at` of the list.
    """

    head: list[Message]
    summaries: list[str]
    restored: str
    old: list[Message]
    kept: list[Message]
    split_at: int


def split_turns(messages: Sequence[Message], keep_turns: int) -> Split:
    """The parts, when the last `keep_turns` turns are kept, or more where the list may not be cut there: where it may
    be cut nowhere before, less. A restored section of an earlier compaction, identified by its heading, is in none of
    them."""
    head: list[Message] = []
    sections: list[str] = []  # summaries, and what was put back
    since: list[Message] = []  # what the user said in a message that holds a summary
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
    """The message with these blocks alone; none without blocks."""
    return [normalise_one(with_blocks(message.raw, blocks))] if blocks else []


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
