"""The structure of message lists: turns, which lists are well formed, where a list may be split, and how to repair it.

A *response* is one answer of the model. It may consist of several adjacent messages of the assistant, because some
harnesses and OpenAI's Responses API write one message for each block. A *turn* is a response and everything up to the
next one. It begins with the assistant and not with the user. An agent that works alone has one user message and many
turns. A border at the last user message would protect all of these turns or none.

A well-formed list has four properties. They come from OpenHands' software-agent-sdk, applied to messages instead of its
events:

- One result for each call: the first one. A late second result (crash recovery) is dropped.
- Calls and results together: a list has both or neither, and no split separates them.
- Whole batches: either all calls of one response have their results, or none of these calls is left.
- Whole thinking loops. A response with thinking and calls is one unit with the responses without thinking that continue
  from its results. Anthropic's API checks the thinking with which a tool loop began.

If a later response uses a call ID again, it names another call, so models may number their calls from 0 in every
response. A chat without IDs may be split anywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from readcache.core.messages.blocks import RESULT_ROLES, Raw, as_mapping, blocks_key
from readcache.core.messages.messages import Kind, Message, Part, normalise, normalise_one
from readcache.core.model.errors import UsageError


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


# The keys of calls and thinking outside of `content`, in OpenAI's shape and the shapes that extend it.
BESIDE_CONTENT = ("tool_calls", "function_call", "thinking_blocks", "reasoning_content")


def cut_points(messages: Sequence[Raw | Message]) -> list[int]:
    """Return the indexes, ascending, at which a well-formed list may be split; 0 is before the first message.

    The list stays well formed if messages are inserted at one of these indexes, or if the messages between two of them
    are deleted. Calls at the end that wait for their results may not be separated from these results. The length of the
    list is then not among the indexes.
    """
    normal = normalise(messages)
    responses, _ = _read(normal)
    ends: dict[int, int] = {}  # start of a response -> the first index after it at which the list may be split
    for at, response in enumerate(responses):
        ends[response.start] = max([response.end, *(result[0] + 1 for result in response.calls.values() if result)])
        if response.goes_on:
            before = responses[at - 1].start
            ends[before] = max(ends[before], response.start + 1)
    if responses and not responses[-1].is_complete:
        ends[responses[-1].start] = len(normal) + 1  # its results are still to come
    points, unbroken_to = [], 0
    for index in range(len(normal) + 1):
        if index >= unbroken_to:
            points.append(index)
        unbroken_to = max(unbroken_to, ends.get(index, 0))
    return points


def next_cut(messages: Sequence[Raw | Message], place: int) -> int:
    """Return the first of the `cut_points` that is at least `place`. Raise UsageError if there is none."""
    found = next((point for point in cut_points(messages) if point >= place), None)
    if found is None:
        raise UsageError(f"the list cannot be cut at {place} or after it: see cut_points(messages)")
    return found


def repair(messages: Sequence[Raw]) -> list[Raw]:
    """Return the list without the calls, results and thinking that break a property. Return the same list object if
    none does.

    Calls at the end are removed too, even if their results may still come. A response that loses its calls also loses
    its thinking and keeps its text. In a thinking loop, everything before the break stays, because the API accepted it
    before. Results are not moved to their calls, so messages in a wrong order stay in that order.
    """
    normal = normalise(messages)
    left = repair_each(normal)
    if isinstance(messages, list) and all(raw is message.raw for raw, message in zip(left, normal, strict=True)):
        return messages
    return [raw for raw in left if raw is not None]


def repair_each(messages: list[Message]) -> list[Raw | None]:
    """Return what `repair` leaves of each message: the message itself, a part of it, or None."""
    gone: dict[int, set[int]] = {}
    for index, at in _broken(messages):
        gone.setdefault(index, set()).add(at)
    return [_without(m, gone[index]) if index in gone else m.raw for index, m in enumerate(messages)]


def answered(messages: Sequence[Message]) -> Iterator[tuple[int, Part, int, Part]]:
    """Yield each result with its call as (index of the call's message, the call, index of the result's message, the
    result), in the order of the results. An ID that a later message uses again names the newer call. Of several calls
    with one ID, or without IDs, a result belongs to the first waiting call with its name, or to the first one."""
    waiting: defaultdict[str | None, list[tuple[int, Part]]] = defaultdict(list)
    for index, message in enumerate(messages):
        for part in message.parts:
            made = waiting[part.call_id]
            if part.kind is Kind.CALL:
                made[:] = [*(each for each in made if each[0] == index), (index, part)]
            elif part.kind is Kind.RESULT and made:
                at = next((at for at, (_, call) in enumerate(made) if call.name == part.name), 0)
                yield *made.pop(at), index, part


# ---------------------------------------------------------------- structure

_PartIndex = tuple[int, int]  # a message's index, a part's index in it


@dataclass(slots=True, eq=False)
class _Response:
    """The messages from `start` up to `end`, and for each of their calls the index of its result."""

    start: int
    end: int
    thinks: bool = False
    goes_on: bool = False  # True: the response belongs to the thinking loop of the response before it
    calls: dict[_PartIndex, _PartIndex | None] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return None not in self.calls.values()


def _read(messages: list[Message]) -> tuple[list[_Response], set[_PartIndex]]:
    """Return the responses, with the results of their calls, and the results that do not belong to a call."""
    responses: list[_Response] = []
    strays: set[_PartIndex] = set()
    waiting: dict[str | None, tuple[_Response, list[_PartIndex]]] = {}  # call ID -> its last response, the calls there
    starts = set(turn_starts(messages))
    for index, message in enumerate(messages):
        if index in starts:
            responses.append(_Response(index, index))
        if is_response(message):
            responses[-1].end = index + 1
        for at, part in enumerate(message.parts):
            caller, calls = waiting.get(part.call_id, (None, []))
            if part.kind is Kind.THINKING:
                responses[-1].thinks = True
            elif part.kind is Kind.CALL:
                responses[-1].calls[index, at] = None
                waiting[part.call_id] = responses[-1], [*(calls if caller is responses[-1] else []), (index, at)]
            elif part.kind is Kind.RESULT and caller is not None and calls:
                caller.calls[calls.pop(0)] = index, at
            elif part.kind is Kind.RESULT:  # without a call, or a second one for its call
                strays.add((index, at))
    for before, response in pairwise(responses):
        between = messages[before.end : response.start]
        are_results = all(any(part.kind is Kind.RESULT for part in message.parts) for message in between)
        is_further = bool(response.calls) and not response.thinks and are_results
        response.goes_on = is_further and (before.thinks or before.goes_on)
    return responses, strays


# ---------------------------------------------------------------- repair


def _broken(messages: list[Message]) -> set[_PartIndex]:
    """Return the parts that cannot stay."""
    responses, broken = _read(messages)
    is_broken = False
    for response in responses:
        # A call without its result breaks its whole batch, and all later responses of the same thinking loop.
        is_broken = not response.is_complete or (is_broken and response.goes_on)
        if not is_broken:
            continue
        for index in range(response.start, response.end):
            parts = enumerate(messages[index].parts)
            broken.update((index, at) for at, part in parts if part.kind in (Kind.CALL, Kind.THINKING))
        broken.update(result for result in response.calls.values() if result)
    return broken


def _without(message: Message, gone: set[int]) -> Raw | None:
    """Return the message without its parts at these indexes; None if the rest is not worth a message."""
    raw = as_mapping(message.raw) or {}
    key = blocks_key(raw)
    if not (raw.get("role") or key == "parts") or message.role in RESULT_ROLES:
        return None
    loses_calls = any(message.parts[at].kind is not Kind.RESULT for at in gone)
    rest = {key: value for key, value in raw.items() if not (loses_calls and key in BESIDE_CONTENT)}
    if isinstance(raw.get(key), (list, tuple)):
        results = (at in gone for at, part in enumerate(message.parts) if part.kind is Kind.RESULT)
        rest[key] = [block for block in raw[key] if not _is_gone(block, loses_calls, results)]
    is_said = (part.text or part.kind in (Kind.IMAGE, Kind.CALL, Kind.RESULT) for part in normalise_one(rest).parts)
    return rest if any(is_said) else None


def _is_gone(block: object, loses_calls: bool, results: Iterator[bool]) -> bool:
    """Return True if this block must go. `results` gives the answer for each result in turn."""
    kinds = [part.kind for part in normalise_one({"role": "user", "content": [block]}).parts]
    if Kind.RESULT in kinds:
        return next(results)
    return loses_calls and not {Kind.CALL, Kind.THINKING}.isdisjoint(kinds)
