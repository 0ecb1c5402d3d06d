"""Changes to messages, in the shape in which the harness wrote them. A function never changes the message that it is
given.

A text that was a string stays a string, a list of blocks stays a list, and JSON in a string stays JSON in a string. If
a message does not contain the part to change, the function returns the same message object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from readcache.core.messages import blocks
from readcache.core.messages.blocks import CALLS, IMAGES, TEXTS, Raw, as_mapping, blocks_key, result_keys, string, typed
from readcache.core.messages.messages import Kind, Message, normalise, normalise_one, parse_arguments, result_text

TextKey = tuple[int, str | None, str]  # a message's index, the call ID if the text is a result, the current text
# (a result's call ID, its index among its message's results without an ID, its text) -> the new text; see `Part`.
NewText = Callable[[str | None, int, str], str | None]
BLOCK_LISTS = ("content", "output", "parts", "tool_calls")  # the keys under which messages and blocks contain blocks


def map_blocks(message: Raw, change: Callable[[Raw], Raw | None]) -> Raw:
    """Return the message with blocks changed. `change` is called with the message, then with its blocks, then with
    their blocks, each with its `type`. It returns a replacement, or None to look inside."""
    raw = as_mapping(message)
    if raw is None:
        return message
    block = typed(raw)
    new = change(block)
    if new is None and string(block.get("type")) in CALLS:
        new = block  # reading a message does not look inside calls either: their content is the model's own input
    elif new is None:
        changed = {}
        for key in BLOCK_LISTS:
            before = block.get(key)
            if isinstance(before, (list, tuple)):
                after = [map_blocks(inner, change) for inner in before]
                if any(a is not b for a, b in zip(after, before, strict=True)):
                    changed[key] = after
        new = {**block, **changed} if changed else block
    return message if new is block else blocks.untyped(new, raw)


def with_result_text(message: Raw, call_id: str | None, text: str, nth: int = 0) -> Raw:
    """Return the message with `text` as the result of this call. Images in the result stay. `nth`: see `Part`."""
    return with_result_texts(message, lambda *found: text if found[:2] == (call_id, nth) else None)


def with_result_texts(message: Raw, change: NewText) -> Raw:
    """Return the message with other texts as results, in one pass. `change` returns the new text of a result, or None
    to keep it. It gets the old text too, which distinguishes two results with one ID. Images in the results stay."""
    nameless = count()

    def change_block(block: Raw) -> Raw | None:
        id_key, key = result_keys(block) or ("", "")
        if not key:
            return None
        call_id = string(block.get(id_key)) or None
        new = change(call_id, next(nameless) if call_id is None else 0, result_text(block))
        return None if new is None else _with_result(block, key, new)

    return map_blocks(message, change_block)


def _with_result(block: Raw, key: str, text: str) -> Raw:
    """Return a result with another text under its `key`."""
    is_bare = block.get("type") == "toolResult"
    new = _response(block, text) if key == "response" else with_content_text(block.get(key), text, is_bare=is_bare)
    return {**block, key: new}


def without_cleared(
    messages: Sequence[Raw], cleared: int | Collection[str], excluded: Collection[str] = ()
) -> Sequence[Raw]:
    """Return the list without the texts of the results that the provider clears before the model sees it. `cleared`:
    the number of oldest results to clear, or the call IDs of these results. Results of `excluded` tools do not
    count."""
    normal = normalise(messages)
    names = {part.call_id: part.name for message in normal for part in message.parts if part.kind is Kind.CALL}
    results = [
        (at, part)
        for at, message in enumerate(normal)
        for part in message.parts
        if part.kind is Kind.RESULT and names.get(part.call_id, part.name) not in excluded
    ]
    gone = results[:cleared] if isinstance(cleared, int) else [each for each in results if each[1].call_id in cleared]
    return with_parts(messages, {(at, part.call_id, part.nth, part.text): "" for at, part in gone})


def with_parts(messages: Sequence[Raw], texts: Mapping[tuple[int, str | None, int, str], str]) -> list[Raw]:
    """Return the list with other texts for these results. A key is (message index, call ID, index among the message's
    results without an ID, current text)."""
    out = list(messages)
    for at in {at for at, *_ in texts}:
        out[at] = with_result_texts(out[at], lambda *result, at=at: texts.get((at, *result)))
    return out


def with_results(messages: list[Raw], by_text_key: Mapping[TextKey, str]) -> list[Raw]:
    """Return the list with other texts for these keys, in results or plain text. Return the same list object if there
    are none."""
    if not by_text_key:
        return messages
    out = list(messages)
    for at in {at for at, *_ in by_text_key}:
        out[at] = _with_results(out[at], at, by_text_key)
    return out


def _with_results(message: Raw, at: int, by_text_key: Mapping[TextKey, str]) -> Raw:
    shown = with_result_texts(message, lambda call_id, _, text: by_text_key.get((at, call_id, text)))
    return with_texts(shown, lambda text: by_text_key.get((at, None, text), text))


def with_arguments(message: Raw, call_id: str | None, arguments: Mapping[str, object], nth: int = 0) -> Raw:
    """Return the message with these arguments of this call. `nth`: see `Part`."""
    nameless = count()

    def change(block: Raw) -> Raw | None:
        id_key, key = CALLS.get(string(block.get("type")), ("", ""))
        found = string(block.get(id_key)) or None
        if key and found == call_id and (found is not None or next(nameless) == nth):
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
    except ValueError:  # the arguments contain a number that JSON cannot represent (`1e999` is read as infinity)
        return call


def with_texts(message: Raw, change: Callable[[str], str]) -> Raw:
    """Return the message with `change` applied to its plain text. Its calls and results stay."""

    def change_block(block: Raw) -> Raw | None:
        is_text = block.get("type") in TEXTS
        if result_keys(block) is not None or not (is_text or "role" in block or "parts" in block):
            return block
        key = "text" if is_text else "content"
        before = block.get(key)
        if not isinstance(before, str):
            return None
        after = change(before)
        return block if after == before else {**block, key: after}

    return map_blocks(message, change_block)


def without_images(message: Raw, note: str) -> Raw:
    """Return the message with each image replaced by the text `note`, also in results."""

    def change(block: Raw) -> Raw | None:
        kind = block.get("type")
        return {"type": "input_text" if kind == "input_image" else "text", "text": note} if kind in IMAGES else None

    return map_blocks(message, change)


def as_blocks(message: Raw) -> list[Any]:
    """Return the content of a message as a list of blocks."""
    raw = as_mapping(message) or {}
    content = raw.get(blocks_key(raw))
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, (list, tuple)) else []


def with_blocks(message: Raw, blocks: list[Any]) -> dict[str, Any]:
    """Return the message with these blocks as its content."""
    raw = as_mapping(message) or {}
    return {**raw, blocks_key(raw): blocks}


def user_message(text: str, like: Iterable[Message]) -> Message:
    """Return a message of the user with this text, in the shape of the messages `like`."""
    for message in like:
        blocks = as_blocks(message.raw)
        key, first = blocks_key(as_mapping(message.raw) or {}), as_mapping(blocks[0]) if blocks else None
        if key == "parts" or (first is not None and typed(first) is not first):
            return normalise_one({"role": "user", key: [{"text": text}]})
    return normalise_one({"role": "user", "content": text})


def with_content_text(content: object, text: str, *, is_bare: bool = False) -> object:
    """Return the content of a result with its text blocks replaced by one. `is_bare`: such a block has no type."""
    if not isinstance(content, (list, tuple)):
        return [{"text": text}] if is_bare else text
    out: list[object] = []
    is_inserted = False
    for block in content:
        inner = as_mapping(block)
        if not isinstance(block, str) and (inner is None or typed(inner).get("type") not in TEXTS):
            out.append(block)
        elif not is_inserted:
            out.append({**(inner or {"type": "text"}), "text": text})
            is_inserted = True
    return out if is_inserted else [{"text": text} if is_bare else {"type": "text", "text": text}, *out]


def _response(block: Raw, text: str) -> Raw:
    """Return Gemini's response with another text. See `text_of_response`."""
    before = block.get("response")
    given = before if isinstance(before, Mapping) else {}
    values = [*given.values()]
    if len(values) == 1 and isinstance(values[0], str):
        return dict.fromkeys(given, text)
    return parse_arguments(text) or {"output": text}
