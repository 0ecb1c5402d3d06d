"""What makes a message list well formed, where it may be cut, and what has to go where it is broken.

The four properties are those of OpenHands' software-agent-sdk, for message lists instead of its events:

- one result for each call: the first one, a late second one (crash recovery) is dropped;
- calls and results together: none without the other, and no cut between them;
- batches whole: of the calls of one response (see `turns`) all have their results, or none is left;
- thinking loops whole: a response with thinking and calls, and the responses without thinking that go on from its
  results, are one unit, since Anthropic's API checks the thinking that a tool loop began with.

A call id used again in a later response is another call, so that models which count their calls from 0 in every
response are understood. A chat without ids may be cut anywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from readcache.core.messages.blocks import RESULT_ROLES, Raw, as_mapping, blocks_key
from readcache.core.messages.messages import Kind, Message, Part, normalise, normalise_one
from readcache.core.messages.turns import is_response, turn_starts

# Where OpenAI's shape and those that extend it keep calls and thinking, outside of `content`.
BESIDE_CONTENT = ("tool_calls", "function_call", "thinking_blocks", "reasoning_content")


def cut_points(messages: Sequence[Raw | Message]) -> list[int]:
    """The places, ascending, at which a well-formed list may be cut: 0 is before the first message.

    Inserting at one of them, and deleting what lies between two of them, leaves the list well formed. Calls at the end
    that wait for their results may not be cut off from them: then the length of the list is not among the places.
    """
    normal = normalise(messages)
    responses, _ = _read(normal)
    ends: dict[int, int] = {}  # where a response starts -> the first place behind it at which a cut may be
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


def repair(messages: Sequence[Raw]) -> list[Raw]:
    """The list without the calls, results and thinking that break a property: the very same list when none do.

    Calls at the end go too, whether their results are still to come or never will. A response that loses its calls
    loses its thinking too and keeps its words. In a thinking loop, everything before the break stays: the API accepted
    it before. Results are not moved to where their call is, so a list whose messages are in a wrong order stays so.
    """
    normal = normalise(messages)
    gone: dict[int, set[int]] = {}
    for index, at in _broken(normal):
        gone.setdefault(index, set()).add(at)
    if not gone and isinstance(messages, list):
        return messages
    left = [_without(m, gone[index]) if index in gone else m.raw for index, m in enumerate(normal)]
    return [raw for raw in left if raw is not None]


def answered(messages: Sequence[Message]) -> Iterator[tuple[int, Part, int, Part]]:
    """Each result with its call: (the call's message, the call, the result's message, the result), in the order of the
    results. An id used again is that of the newer call; without ids, results come in the order of their calls."""
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

_PartIndex = tuple[int, int]  # a message's index, a part's place in it


@dataclass(slots=True, eq=False)
class _Response:
    """The messages from `start` up to `end`, and for each of their calls the place of its result."""

    start: int
    end: int
    thinks: bool = False
    goes_on: bool = False  # it is part of the thinking loop of the response before
    calls: dict[_PartIndex, _PartIndex | None] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return None not in self.calls.values()


def _read(messages: list[Message]) -> tuple[list[_Response], set[_PartIndex]]:
    """The responses, with the results of their calls, and the results that belong to no call."""
    responses: list[_Response] = []
    strays: set[_PartIndex] = set()
    waiting: dict[str | None, tuple[_Response, list[_PartIndex]]] = {}  # call id -> its last response, the calls there
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
    """The parts that cannot stay."""
    responses, broken = _read(messages)
    is_broken = False
    for response in responses:
        # a call without its result takes its batch along, and what goes on from it in the same thinking loop
        is_broken = not response.is_complete or (is_broken and response.goes_on)
        if not is_broken:
            continue
        for index in range(response.start, response.end):
            parts = enumerate(messages[index].parts)
            broken.update((index, at) for at, part in parts if part.kind in (Kind.CALL, Kind.THINKING))
        broken.update(result for result in response.calls.values() if result)
    return broken


def _without(message: Message, gone: set[int]) -> Raw | None:
    """The message without its parts at these places; None when nothing is left that is worth a message."""
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
    """True if this block must go. `results` answers that for each result in turn."""
    kinds = [part.kind for part in normalise_one({"role": "user", "content": [block]}).parts]
    if Kind.RESULT in kinds:
        return next(results)
    return loses_calls and not {Kind.CALL, Kind.THINKING}.isdisjoint(kinds)
