"""Items of the Responses API, as the Agents SDK sends them: results of tools, and the calls that they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from readcache import Frame
from readcache.core.messages.blocks import as_mapping
from readcache.core.messages.editing import with_result_text
from readcache.core.messages.messages import Kind, Message, Part, normalise_one
from readcache.core.model.text import digest
from readcache.core.model.tool_call import ToolCall

Item = Mapping[str, Any]

_FAILED = ("An error occurred while running the tool", "An error occurred while parsing tool arguments")
_LATE = re.compile(r"Tool '.*' timed out after [\d.]+ seconds\.?\Z")
# The header that a sandbox's tools write before an output.
_CHUNK = re.compile(
    r"\AChunk ID: \w+\nWall time: [\d.]+ seconds\n(?:Process exited with code (?P<status>-?\d+)\n)?"
    r"(?P<goes_on>Process running with session ID \d+\n)?(?P<is_truncated>Original token count: \d+\n)?Output:\n"
)


def message_of_item(item: Item) -> Message:
    """Return the item as a message. The model's texts, its calls and compactions have the role "assistant"."""
    item = as_mapping(item) or {}
    kind = str(item.get("type") or "")
    if kind.startswith("compaction"):
        return Message("assistant", (Part(Kind.OTHER, digest(str(item.get("encrypted_content"))), name=kind),), item)
    message = normalise_one(_as_function(item))
    role = message.role or ("tool" if kind.endswith("_output") else "assistant")
    return Message(role, message.parts, item)


def with_item_text(item: Item, text: str) -> Item:
    """Return the item of a result with another text."""
    if _is_shell_output(item):
        known = [key for key in ("output", "shell_output") if item.get(key)]
        return {**item, **{key: [{**item[key][0], "stdout": text}] for key in known}}
    return with_result_text(item, item["call_id"], text)


def with_details(result: ToolCall, message: Message) -> ToolCall:
    """Return the result with the details that the SDK's tools give in its text or item: failure, exit status, header,
    and whether it is complete."""
    item, text = message.raw, result.output
    if text.startswith(_FAILED) or _LATE.match(text):
        return replace(result, is_error=True)
    if chunk := _CHUNK.match(text):
        status = None if chunk["status"] is None else int(chunk["status"])
        is_complete = not (chunk["goes_on"] or chunk["is_truncated"])
        return replace(result, complete=is_complete, exit_code=status, frame=Frame(chunk[0].count("\n")))
    if _is_shell_output(item):
        outcome = item["output"][0].get("outcome")
        outcome = outcome if isinstance(outcome, Mapping) else {}
        max_length = item.get("max_output_length")
        is_complete = outcome.get("type") != "timeout" and (max_length is None or len(text) < int(max_length))
        return replace(result, complete=is_complete, exit_code=outcome.get("exit_code"))
    return result


def _is_shell_output(item: Item) -> bool:
    """Return True for the output of a single shell command."""
    outputs = item.get("output") if item.get("type") == "shell_call_output" else None
    return isinstance(outputs, list) and len(outputs) == 1 and isinstance(outputs[0].get("stdout"), str)


def _as_function(item: Item) -> Item:
    """Return a function call or its output that replaces an item of the shell tool. Return other items unchanged."""
    if _is_shell_output(item):
        return {"type": "function_call_output", "call_id": item["call_id"], "output": item["output"][0]["stdout"]}
    if item.get("type") == "shell_call":
        commands = (item.get("action") or {}).get("commands") or []
        given = json.dumps({"command": commands[0]} if len(commands) == 1 else {})
        return {"type": "function_call", "call_id": item.get("call_id"), "name": "shell", "arguments": given}
    return item
