"""Changes to messages, in the shape in which the harness wrote them. The message that is given is never changed.

A text that was a string stays a string, a list of blocks stays a list, JSON in a string stays JSON in a string. What is
not in a message is not changed: then the very same message comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from readcache.messages.messages import (
    IMAGES,
    ITEM_CALLS,
    ITEM_RESULTS,
    RESULT_ROLES,
    TEXTS,
    Kind,
    Raw,
    as_mapping,
    normalise_one,
    parse_arguments,
)


def with_result_text(message: Raw, call_id: str | None, text: str) -> Raw:
    """The message with `text` as the result of this call. Images in the result stay."""
    raw = as_mapping(message) or {}
    if raw.get("role") in RESULT_ROLES and raw.get("tool_call_id") == call_id:
        return {**raw, "content": _with_text(raw.get("content"), text)}
    if raw.get("type") in ITEM_RESULTS and raw.get("call_id") == call_id:
        return {**raw, "output": _with_text(raw.get("output"), text)}

    def change(block: Raw) -> Raw:
        if block.get("type") == "tool_result" and block.get("tool_use_id") == call_id:
            return {**block, "content": _with_text(block.get("content"), text)}
        return block

    return _with_blocks(message, change)


def with_results(messages: list[Raw], by_text: Mapping[str, str]) -> list[Raw]:
    """The list with other texts in the places of results, or of what is plainly said, that are keys of `by_text`: the
    very same list where there are none."""
    if not by_text:
        return messages
    out = list(messages)
    for at, message in enumerate(messages):
        for part in normalise_one(message).parts:
            if part.kind is Kind.RESULT and part.text in by_text:
                out[at] = with_result_text(out[at], part.call_id, by_text[part.text])
        out[at] = with_texts(out[at], lambda text: by_text.get(text, text))
    return out


def with_arguments(message: Raw, call_id: str | None, arguments: Mapping[str, object]) -> Raw:
    """The message with these arguments of this call."""
    raw = as_mapping(message) or {}
    if raw.get("type") in ITEM_CALLS and raw.get("call_id") == call_id:
        key = ITEM_CALLS[raw["type"]]
        return {**raw, key: _encoded_like(raw.get(key), arguments)}
    if call_id is None and as_mapping(raw.get("function_call")) is not None:
        return {**raw, "function_call": _call_with_arguments(raw["function_call"], arguments)}
    calls = raw.get("tool_calls")
    if isinstance(calls, list) and any((as_mapping(call) or {}).get("id") == call_id for call in calls):
        return {**raw, "tool_calls": [_tool_call_with_arguments(call, call_id, arguments) for call in calls]}

    def change(block: Raw) -> Raw:
        if block.get("type") == "tool_use" and block.get("id") == call_id:
            return {**block, "input": dict(arguments)}
        return block

    return _with_blocks(message, change)


def with_texts(message: Raw, change: Callable[[str], str]) -> Raw:
    """The message with what is plainly said in it changed, not its calls and results."""
    raw = as_mapping(message) or {}
    content = raw.get("content")
    if isinstance(content, str) and raw.get("role") not in RESULT_ROLES:
        new = change(content)
        return message if new == content else {**raw, "content": new}

    def change_block(block: Raw) -> Raw:
        if block.get("type") not in TEXTS or not isinstance(block.get("text"), str):
            return block
        new = change(block["text"])
        return block if new == block["text"] else {**block, "text": new}

    return message if raw.get("role") in RESULT_ROLES else _with_blocks(message, change_block)


def as_blocks(message: Raw) -> list[Any]:
    """The content of a message as blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, (list, tuple)) else []


def without_images(message: Raw, note: str) -> Raw:
    """The message with the text `note` in the place of each image, in results too."""

    def change(block: Raw) -> Raw:
        kind = block.get("type")
        if kind in IMAGES:
            return {"type": "input_text" if kind == "input_image" else "text", "text": note}
        return _with_blocks(block, change)

    return _with_blocks(
        message, change, "output" if (as_mapping(message) or {}).get("type") in ITEM_RESULTS else "content"
    )


def _with_blocks(message: Raw, change: Callable[[Raw], Raw], key: str = "content") -> Raw:
    raw = as_mapping(message)
    blocks = raw.get(key) if raw is not None else None
    if raw is None or not isinstance(blocks, (list, tuple)):
        return message
    new = [block if (inner := as_mapping(block)) is None else _changed(block, inner, change) for block in blocks]
    return message if all(a is b for a, b in zip(new, blocks, strict=True)) else {**raw, key: new}


def _changed(block: Any, inner: Raw, change: Callable[[Raw], Raw]) -> Any:
    new = change(inner)
    return block if new is inner else new


def _with_text(content: object, text: str) -> object:
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


def _tool_call_with_arguments(call: Any, call_id: str | None, arguments: Mapping[str, object]) -> Any:
    raw = as_mapping(call)
    if raw is None or raw.get("id") != call_id or as_mapping(raw.get("function")) is None:
        return call
    return {**raw, "function": _call_with_arguments(raw["function"], arguments)}


def _call_with_arguments(function: Any, arguments: Mapping[str, object]) -> dict[str, Any]:
    raw = as_mapping(function) or {}
    return {**raw, "arguments": _encoded_like(raw.get("arguments"), arguments)}


def _encoded_like(given: object, arguments: Mapping[str, object]) -> object:
    if isinstance(given, str) and parse_arguments(given) is not None:
        return json.dumps(arguments, ensure_ascii=False)
    return dict(arguments)
