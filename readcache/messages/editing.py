"""Changes to messages, in the shape in which the harness wrote them. The message that is given is never changed.

A text that was a string stays a string, a list of blocks stays a list, JSON in a string stays JSON in a string. What is
not in a message is not changed: then the very same message comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from readcache.messages.messages import (
    CALLS,
    IMAGES,
    TEXTS,
    Kind,
    Raw,
    as_mapping,
    normalise,
    normalise_one,
    parse_arguments,
    result_keys,
)

TextPlace = tuple[int, str | None, str]  # a message's index, the call whose result it is, the text as it stands there
BLOCK_LISTS = ("content", "output", "tool_calls")  # the keys under which messages and blocks hold blocks


def map_blocks(message: Raw, change: Callable[[Raw], Raw | None]) -> Raw:
    """The message with blocks changed: `change` is called with the message, then its blocks, then theirs. It returns a
    replacement, or None to look inside."""
    raw = as_mapping(message)
    if raw is None:
        return message
    new = change(raw)
    if new is not None:
        return message if new is raw else new
    changed = {}
    for key in BLOCK_LISTS:
        before = raw.get(key)
        if isinstance(before, (list, tuple)):
            after = [map_blocks(block, change) for block in before]
            if any(a is not b for a, b in zip(after, before, strict=True)):
                changed[key] = after
    return {**raw, **changed} if changed else message


def with_result_text(message: Raw, call_id: str | None, text: str) -> Raw:
    """The message with `text` as the result of this call. Images in the result stay."""

    def change(block: Raw) -> Raw | None:
        id_key, key = result_keys(block) or ("", "")
        is_of_call = key and block.get(id_key) == call_id
        return {**block, key: with_content_text(block.get(key), text)} if is_of_call else None

    return map_blocks(message, change)


def without_cleared(
    messages: Sequence[Raw], cleared: int | Collection[str], excluded: Collection[str] = ()
) -> Sequence[Raw]:
    """The list without the texts of the results that the provider clears before the model sees it: the `cleared` oldest
    ones, or those of these ids. Results of `excluded` tools are not counted."""
    normal = normalise(messages)
    names = {part.call_id: part.name for message in normal for part in message.parts if part.kind is Kind.CALL}
    results = [
        (at, part.call_id)
        for at, message in enumerate(normal)
        for part in message.parts
        if part.kind is Kind.RESULT and names.get(part.call_id, part.name) not in excluded
    ]
    gone = results[:cleared] if isinstance(cleared, int) else [place for place in results if place[1] in cleared]
    out = list(messages)
    for at, call_id in gone:
        out[at] = with_result_text(out[at], call_id, "")
    return out


def with_results(messages: list[Raw], by_place: Mapping[TextPlace, str]) -> list[Raw]:
    """The list with other texts in these places, in results or plain text. The same list object if there are none."""
    if not by_place:
        return messages
    out = list(messages)
    for at in sorted({at for at, _, _ in by_place}):
        for part in normalise_one(messages[at]).parts:
            if part.kind is Kind.RESULT and (at, part.call_id, part.text) in by_place:
                out[at] = with_result_text(out[at], part.call_id, by_place[at, part.call_id, part.text])
        plain = {text: new for (index, call_id, text), new in by_place.items() if (index, call_id) == (at, None)}
        out[at] = with_texts(out[at], partial(_changed, plain))
    return out


def _changed(changes: Mapping[str, str], text: str) -> str:
    return changes.get(text, text)


def with_arguments(message: Raw, call_id: str | None, arguments: Mapping[str, object]) -> Raw:
    """The message with these arguments of this call."""

    def change(block: Raw) -> Raw | None:
        id_key, key = CALLS.get(block.get("type", ""), ("", ""))
        if key and block.get(id_key) == call_id:
            return _with_arguments(block, key, arguments)
        for key, its_id in (("function", block.get("id")), ("function_call", None)):
            called = as_mapping(block.get(key))
            if called is not None and its_id == call_id:
                return {**block, key: _with_arguments(called, "arguments", arguments)}
        return None

    return map_blocks(message, change)


def _with_arguments(call: Raw, key: str, arguments: Mapping[str, object]) -> Raw:
    if not isinstance(call.get(key), str) or parse_arguments(call[key]) is None:
        return {**call, key: dict(arguments)}
    try:
        return {**call, key: json.dumps(arguments, ensure_ascii=False, allow_nan=False)}
    except ValueError:  # a number that JSON does not have (`1e999`) cannot be written again
        return call


def with_texts(message: Raw, change: Callable[[str], str]) -> Raw:
    """The message with its plain text changed; its calls and results stay."""

    def change_block(block: Raw) -> Raw | None:
        is_text = block.get("type") in TEXTS
        if result_keys(block) is not None or not (is_text or "role" in block):
            return block
        key = "text" if is_text else "content"
        before = block.get(key)
        if not isinstance(before, str):
            return None
        after = change(before)
        return block if after == before else {**block, key: after}

    return map_blocks(message, change_block)


def without_images(message: Raw, note: str) -> Raw:
    """The message with each image replaced by the text `note`, in results too."""

    def change(block: Raw) -> Raw | None:
        kind = block.get("type")
        return {"type": "input_text" if kind == "input_image" else "text", "text": note} if kind in IMAGES else None

    return map_blocks(message, change)


def as_blocks(message: Raw) -> list[Any]:
    """The content of a message as blocks."""
    content = (as_mapping(message) or {}).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, (list, tuple)) else []


def with_content_text(content: object, text: str) -> object:
    """The content of a result with its text blocks replaced by one."""
    if not isinstance(content, (list, tuple)):
        return text
    out: list[object] = []
    is_placed = False
    for block in content:
        inner = as_mapping(block)
        if not isinstance(block, str) and (inner is None or inner.get("type") not in TEXTS):
            out.append(block)
        elif not is_placed:
            out.append({**(inner or {"type": "text"}), "text": text})
            is_placed = True
    return out if is_placed else [{"type": "text", "text": text}, *out]
