"""Blocks of messages: each API's names for a text, a call and a result, and the keys under which it keeps them.

Most blocks have a `type`. In Bedrock's Converse and in Gemini's `parts`, the type of a block is a key instead:
`{"toolUse": {"name": …}}`. `typed` reads such a block as a block with a `type`, and `untyped` writes it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]  # a message, or a block, as its harness wrote it

RESULT_ROLES = ("tool", "function")
TEXTS = ("text", "input_text", "output_text")
IMAGES = ("image", "image_url", "input_image")
THINKING = {  # block type -> the key of its readable text
    "thinking": "thinking",
    "redacted_thinking": "",
    "reasoning": "summary",
    "reasoningContent": "reasoningText",
    "thought": "text",
}
# Type of a call -> the keys of its ID and its arguments. The second and third are items of the Responses API. They
# occur outside of messages and have no role.
CALLS = {
    "tool_use": ("id", "input"),
    "function_call": ("call_id", "arguments"),
    "custom_tool_call": ("call_id", "input"),
    "toolUse": ("toolUseId", "input"),
    "functionCall": ("id", "args"),
}
ITEM_RESULTS = ("function_call_output", "custom_tool_call_output")
RESULTS = {  # type of a result -> the keys of its call's ID and its content
    "tool_result": ("tool_use_id", "content"),
    "toolResult": ("toolUseId", "content"),
    "functionResponse": ("id", "response"),
    **dict.fromkeys(ITEM_RESULTS, ("call_id", "output")),
}
# Key of a block -> its type. Google's package for Python uses other names.
_KEYS = {name: name for name in ("toolUse", "toolResult", "reasoningContent", "image")}
_KEYS |= {"functionCall": "functionCall", "functionResponse": "functionResponse", "inlineData": "inlineData"}
_KEYS |= {"function_call": "functionCall", "function_response": "functionResponse", "inline_data": "inlineData"}


def as_mapping(thing: object) -> Raw | None:
    """Return a message or block as a mapping; None if it is neither a mapping nor such an object. Objects of the APIs'
    own packages are converted, because harnesses put them into their lists unchanged
    (`messages.append(response.message)`)."""
    if isinstance(thing, Mapping):
        return thing
    dump = getattr(thing, "model_dump", None)
    if not callable(dump):
        return None
    dumped = dump(exclude_none=True)
    return dumped if isinstance(dumped, Mapping) else None


def typed(raw: Raw) -> Raw:
    """Return the block with a `type`. Return the same object if it has a type or a role already, or if its type is
    unknown."""
    if "type" in raw or "role" in raw:
        return raw
    if isinstance(raw.get("text"), str):
        return {**raw, "type": "thought" if raw.get("thought") is True else "text"}
    key, inner = _inside(raw)
    if inner is None:
        return raw
    kind = _KEYS[key]
    if kind == "inlineData" and str(inner.get("mimeType") or inner.get("mime_type")).startswith("image/"):
        kind = "image"
    return {**inner, "type": kind}


def untyped(block: Raw, raw: Raw) -> Raw:
    """Return `block`, which was made from `typed(raw)`, in the shape of `raw`. A text may have replaced an image."""
    if "type" in raw or "role" in raw:
        return block
    key, inner = _inside(raw)
    rest = {name: value for name, value in block.items() if name != "type"}
    if inner is None or block.get("type") in TEXTS:
        return rest
    return {**raw, key: {**rest, **{name: value for name, value in inner.items() if name == "type"}}}


def _inside(raw: Raw) -> tuple[str, Raw | None]:
    """Return the key that is the block's type, and the content under it; ("", None) if there is no such key."""
    return next(
        ((key, inner) for key in raw if key in _KEYS and (inner := as_mapping(raw[key])) is not None), ("", None)
    )


def blocks_key(message: Raw) -> str:
    """Return the key under which a message has its blocks."""
    return "parts" if "parts" in message and "content" not in message else "content"


def result_keys(raw: Raw) -> tuple[str, str] | None:
    """Return the keys of a result's call ID and content, such as `("tool_call_id", "content")`; None if it is not a
    result."""
    kind = string(raw.get("type"))
    is_block = kind in CALLS or kind in TEXTS  # then its `role` does not make it a result
    if raw.get("role") in RESULT_ROLES and blocks_key(raw) == "content" and not is_block:
        return "tool_call_id", "content"
    return RESULTS.get(kind)


def string(value: object) -> str:
    """Return the value if it is a string, otherwise ""."""
    return value if isinstance(value, str) else ""
