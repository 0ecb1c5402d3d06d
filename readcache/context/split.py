"""The parts of a conversation at a compaction: what always stays, what is summarised, what is kept; and the list that
is made of them again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from readcache.context import summary
from readcache.messages.editing import as_blocks
from readcache.messages.messages import Kind, Message, as_mapping, normalise, normalise_one
from readcache.messages.structure import cut_points
from readcache.messages.turns import last_turns
from readcache.restore import plan as restore

OWN_HEADINGS = (summary.HEADING, f"## {restore.HEADING}")

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parted:
    """`head`: what stands before the first turn, instructions and task. `summaries`: of earlier compactions, oldest
    first. `old` is to be summarised, `kept` stays and begins at message `cut` of the list. `in_blocks`: are its calls
    blocks, as in Anthropic's API?"""

    head: list[Raw]
    summaries: list[str]
    old: list[Raw]
    kept: list[Raw]
    cut: int
    in_blocks: bool


def part(messages: Sequence[Raw], keep_turns: int) -> Parted:
    """The parts, when the last `keep_turns` turns are kept, or more where the list may not be cut there: where it may
    be cut nowhere before, less. A restored section of an earlier compaction, known by its heading, is in none."""
    normal = normalise(messages)
    opening = _Opening()
    first = next((message.index for message in normal if not opening.takes(message, messages)), len(normal))
    cut = _cut(messages, normal, first, keep_turns)
    old = [*opening.said_since, *messages[first:cut]] if cut > first else []
    in_blocks = any(map(_has_blocks_of_calls, messages))
    return Parted(opening.head, opening.summaries, old, list(messages[cut:]), cut, in_blocks)


class _Opening:
    """What stands before the turns: the head, and what an earlier compaction put there."""

    def __init__(self) -> None:
        self.head: list[Raw] = []
        self.summaries: list[str] = []
        self.said_since: list[Raw] = []  # by the user, in the message that holds the summary
        self._was_compacted = False

    def takes(self, message: Message, messages: Sequence[Raw]) -> bool:
        """Is the message a part of the opening? Then it is taken in."""
        raw = messages[message.index]
        own = [p.text for p in message.parts if p.kind is Kind.TEXT and p.text.startswith(OWN_HEADINGS)]
        if message.role == "assistant" or (self._was_compacted and not own):
            return False
        if not own:
            self.head.append(raw)
            return True
        self._was_compacted = True
        self.summaries += [text for text in own if text.startswith(summary.HEADING)]
        blocks = as_blocks(as_mapping(raw) or {})
        is_own = [(as_mapping(block) or {}).get("text") in own for block in blocks]
        at = is_own.index(True)
        since = [block for block, own_ in zip(blocks[at:], is_own[at:], strict=True) if not own_]
        self.head += [{**raw, "content": blocks[:at]}] if at else []
        self.said_since += [{**raw, "content": since}] if since else []
        return True


def _cut(messages: Sequence[Raw], normal: Sequence[Message], first: int, keep_turns: int) -> int:
    unanswered = len(normal)
    while unanswered > first and _is_plain_user(normal[unanswered - 1]):
        unanswered -= 1
    border = max(first, min(unanswered, last_turns(normal, keep_turns)))
    points = cut_points(messages)
    below = points[bisect_right(points, border) - 1]
    if below > first or border == first:
        return max(below, first)
    above = bisect_left(points, border)
    return points[above] if above < len(points) else first


def _is_plain_user(message: Message) -> bool:
    return message.role == "user" and all(
        p.kind in (Kind.TEXT, Kind.IMAGE) and p.call_id is None for p in message.parts
    )


def joined(parts: Parted, said: Sequence[str], kept: Sequence[Raw]) -> list[Raw]:
    """The new list: the head, what is `said` to the agent as messages of the user, and what was kept. In blocks,
    adjacent messages of the user are one, so that roles alternate as Anthropic's API has it."""
    told: list[Raw] = [{"role": "user", "content": text} for text in said if text]
    if not parts.in_blocks:
        return [*parts.head, *told, *kept]
    out: list[Raw] = []
    border = len(parts.head) + len(told)
    for at, message in enumerate((*parts.head, *told, *kept)):
        if out and at <= border and message.get("role") == "user" == out[-1].get("role"):
            out[-1] = {**out[-1], "content": [*as_blocks(out[-1]), *as_blocks(message)]}
        else:
            out.append(message)
    return out


def _has_blocks_of_calls(message: Raw) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, (list, tuple)):
        return False
    return any(p.kind in (Kind.CALL, Kind.RESULT) for p in normalise_one({"role": "user", "content": content}, 0).parts)
