"""Make a list acceptable for the APIs: remove broken and empty parts, and alternate the roles if an API requires it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

from readcache.core.messages.blocks import CALLS, RESULTS, Raw, as_mapping, blocks_key, typed
from readcache.core.messages.editing import as_blocks, with_blocks
from readcache.core.messages.messages import Kind, Message, normalise, normalise_one, update_all
from readcache.core.messages.structure import BESIDE_CONTENT, cut_points, is_response, repair

_SPEAKERS = ("user", "assistant")
_UNSAID = (Kind.TEXT, Kind.OTHER)  # parts that are empty without a text or the name of a type


def well_formed(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the list repaired and `sendable`; the same list object if it already was. Calls at its end that wait for
    their results stay."""
    answers = [normalise_one({"role": "tool", "tool_call_id": call_id}) for call_id in _waiting(messages)]
    read = {id(message.raw): message for message in (*messages, *answers)}
    # `repair` and `normalise` do not read a `Message` again
    repaired = repair(cast("list[Raw]", [*messages, *answers]))
    left = normalise([read.get(id(raw), raw) for raw in repaired])
    out = sendable([message for message in left if not any(message is answer for answer in answers)])
    is_same = len(out) == len(messages) and all(a is b for a, b in zip(out, messages, strict=True))
    return messages if is_same else out


def _waiting(messages: Sequence[Message]) -> Iterator[str | None]:
    """Yield the IDs of calls at the end whose results are still to come. Yield nothing if anything except results and
    images follows these calls."""
    last = messages[cut_points(messages)[-1] :]
    made = [part.call_id for message in last for part in message.parts if part.kind is Kind.CALL]
    since = [part for message in last if not is_response(message) for part in message.parts]
    if all(part.kind is Kind.RESULT and part.call_id in made for part in since if part.kind is not Kind.IMAGE):
        yield from (Counter(made) - Counter(part.call_id for part in since)).elements()


def sendable(messages: Sequence[Message], gone: Sequence[Message] = ()) -> list[Message]:
    """Return the list without messages and blocks that say nothing.

    If calls are blocks, as in Anthropic's API, adjacent messages of one speaker become one message, with results first.
    `gone`: removed messages, which also show which API it is.
    """
    said = [(message, raw) for message in messages if (raw := _without_blanks(message)) is not None]
    left = update_all([message for message, _ in said], [raw for _, raw in said])
    if not any(_has_blocks_of_calls(message) for message in (*left, *gone)):
        return left
    out: list[Message] = []
    for message in left:
        raw = as_mapping(message.raw) or {}
        is_further = out and message.role == out[-1].role and message.role in _SPEAKERS
        if is_further and not any(raw.get(key) for key in BESIDE_CONTENT):
            blocks = [*as_blocks(out[-1].raw), *as_blocks(raw)]
            blocks.sort(key=lambda block: _type_of(block) not in RESULTS)
            out[-1] = normalise_one(with_blocks(out[-1].raw, blocks))
        else:
            out.append(message)
    return out


def _without_blanks(message: Message) -> Raw | None:
    """Return the message without its empty blocks; None if nothing is left. The result of a call may be empty."""
    raw: Raw = message.raw
    if message.role in (*_SPEAKERS, "system", "developer"):
        if not any(part.text.strip() or part.name or part.kind not in _UNSAID for part in message.parts):
            return None
        given = as_mapping(raw) or {}
        blocks = given.get(blocks_key(given))
        if isinstance(blocks, list) and not all(map(_is_solid, blocks)):
            return with_blocks(given, list(filter(_is_solid, blocks)))
    return raw


def _is_solid(block: Any) -> bool:
    return _type_of(block) != "text" or bool(str((as_mapping(block) or {}).get("text") or "").strip())


def _has_blocks_of_calls(message: Message) -> bool:
    return any(_type_of(block) in (*CALLS, *RESULTS) for block in as_blocks(message.raw))


def _type_of(block: Any) -> object:
    return typed(as_mapping(block) or {}).get("type")
