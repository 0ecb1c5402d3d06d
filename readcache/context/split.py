"""The parts of a conversation at a compaction: what always stays, what is summarised, what is kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from readcache.context import summary
from readcache.messages.editing import as_blocks
from readcache.messages.messages import Kind, Message, as_mapping, normalise_one
from readcache.messages.structure import cut_points
from readcache.messages.turns import last_turns
from readcache.restore import plan as restore

OWN_HEADINGS = (summary.HEADING, f"## {restore.HEADING}")


@dataclass(frozen=True, slots=True)
class Split:
    """A conversation in its parts.

    `head`: what stands before the first turn, instructions and task. `summaries`: of earlier compactions, oldest first.
    `old` is to be summarised, `kept` stays and begins at message `cut` of the list. `in_blocks`: are its calls blocks,
    as in Anthropic's API?
    """

    head: list[Message]
    summaries: list[str]
    old: list[Message]
    kept: list[Message]
    cut: int
    in_blocks: bool


def split_turns(messages: Sequence[Message], keep_turns: int) -> Split:
    """The parts, when the last `keep_turns` turns are kept, or more where the list may not be cut there: where it may
    be cut nowhere before, less. A restored section of an earlier compaction, identified by its heading, is in none of
    them."""
    head: list[Message] = []
    summaries: list[str] = []
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
        summaries += [text for text in own if text.startswith(summary.HEADING)]
        blocks = as_blocks(message.raw)
        is_own = [(as_mapping(block) or {}).get("text") in own for block in blocks]
        at = is_own.index(True)
        head += _with_content(message, blocks[:at])
        since += _with_content(message, [blocks[k] for k in range(at, len(blocks)) if not is_own[k]])
    cut = _cut(messages, first, keep_turns)
    old = [*since, *messages[first:cut]] if cut > first else []
    return Split(head, summaries, old, list(messages[cut:]), cut, any(map(_has_blocks_of_calls, messages)))


def _with_content(message: Message, blocks: list[Any]) -> list[Message]:
    """The message with these blocks alone; none without blocks."""
    return [normalise_one({**(as_mapping(message.raw) or {}), "content": blocks})] if blocks else []


def _cut(messages: Sequence[Message], first: int, keep_turns: int) -> int:
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


def merge_users(messages: Sequence[Message], border: int) -> list[Message]:
    """The list with adjacent messages of the user as one, up to that at `border`: so roles alternate as Anthropic's API
    has it."""
    out: list[Message] = []
    for at, message in enumerate(messages):
        if out and at <= border and message.role == out[-1].role == "user":
            blocks = [*as_blocks(out[-1].raw), *as_blocks(message.raw)]
            out[-1] = normalise_one({**out[-1].raw, "content": blocks})
        else:
            out.append(message)
    return out


def _has_blocks_of_calls(message: Message) -> bool:
    blocks = as_blocks(message.raw)
    return any((as_mapping(block) or {}).get("type") in ("tool_use", "tool_result") for block in blocks)
