"""Items of the Responses API, as the Agents SDK sends them: results of tools, and the calls that they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from readcache import Frame
from readcache.hosts.tool_results import ToolResult
from readcache.messages.blocks import ITEM_RESULTS
from readcache.messages.editing import with_result_text
from readcache.messages.messages import Kind, Part, last_compaction, normalise_one

Item = Mapping[str, Any]

_FAILED = ("An error occurred while running the tool", "An error occurred while parsing tool arguments")
_LATE = re.compile(r"Tool '.*' timed out after [\d.]+ seconds\.?\Z")
# What a sandbox's tools put in front of an output.
_CHUNK = re.compile(
    r"\AChunk ID: \w+\nWall time: [\d.]+ seconds\n(?:Process exited with code (?P<status>-?\d+)\n)?"
    r"(?P<goes_on>Process running with session ID \d+\n)?(?P<is_cut>Original token count: \d+\n)?Output:\n"
)


class ToolItem(NamedTuple):
    """A result in a list, and where it stands there."""

    at: int
    result: ToolResult


def tool_items(items: Sequence[Item]) -> list[ToolItem]:
    """The results that are texts and whose calls are in the list too: where the server keeps the history, they are not.
    Calls that the model made at once have one batch."""
    calls: dict[str | None, tuple[str, Mapping[str, Any], str]] = {}
    found, batch = list[ToolItem](), ""
    for at, item in enumerate(items):
        part = next(iter(normalise_one(as_function(item)).parts), Part(Kind.OTHER))
        if part.kind is Kind.CALL:
            batch = batch or f"at once with {part.call_id}"
            calls[part.call_id] = part.name, part.arguments or {}, batch
        elif part.kind is Kind.RESULT:
            batch, text = "", text_of(item)
            if text is not None and part.call_id in calls:
                found.append(ToolItem(at, _result(item, str(part.call_id), text, *calls[part.call_id])))
        elif part.kind is not Kind.THINKING and not (isinstance(item, Mapping) and "call_id" in item):
            batch = ""
    return found


def result_ids(items: Sequence[Item]) -> list[str]:
    """The ids of the calls whose results are in the list, whatever they are."""
    return [str(item.get("call_id")) for item in items if _type(item).endswith("_output")]


def is_compaction(item: Item) -> bool:
    """True for what the server left of all that stands before it, which it drops."""
    return last_compaction(item) is not None


def said(item: Item) -> tuple[str, str]:
    """Who says what in an item, however that is written."""
    message = normalise_one(item)
    return message.role or _type(item), message.text or str(item.get("encrypted_content"))


def text_of(item: Item) -> str | None:
    """The text of a result; None if it is not a result, or has more than one text."""
    if _type(item) == "shell_call_output":
        outputs = item.get("output")
        return outputs[0].get("stdout") if isinstance(outputs, list) and len(outputs) == 1 else None
    output = item.get("output") if _type(item) in ITEM_RESULTS else None
    if isinstance(output, list) and len(output) == 1 and _type(output[0]) == "input_text":
        output = output[0].get("text")
    return output if isinstance(output, str) else None


def with_item_text(item: Item, text: str) -> Item:
    """The result with another text."""
    if _type(item) == "shell_call_output":
        known = [key for key in ("output", "shell_output") if item.get(key)]
        return {**item, **{key: [{**item[key][0], "stdout": text}] for key in known}}
    return with_result_text(item, item["call_id"], text)


def as_function(item: Item) -> Item:
    """The item, or one that stands for it where a session does not know its type."""
    if _type(item) == "shell_call_output" and (text := text_of(item)) is not None:
        return {"type": "function_call_output", "call_id": item["call_id"], "output": text}
    if _type(item) == "shell_call":
        commands = (item.get("action") or {}).get("commands") or []
        given = json.dumps({"command": commands[0]} if len(commands) == 1 else {})
        return {"type": "function_call", "call_id": item.get("call_id"), "name": "shell", "arguments": given}
    return item


def _type(item: object) -> str:
    return str(item.get("type") or "") if isinstance(item, Mapping) else ""


def _result(item: Item, call_id: str, text: str, name: str, arguments: Mapping[str, Any], batch: str) -> ToolResult:
    said: dict[str, Any] = {"is_error": text.startswith(_FAILED) or _LATE.match(text) is not None}
    if chunk := _CHUNK.match(text):
        said |= {"complete": not (chunk["goes_on"] or chunk["is_cut"]), "frame": Frame(chunk[0].count("\n"))}
        said |= {"exit_code": None if chunk["status"] is None else int(chunk["status"])}
    elif _type(item) == "shell_call_output":
        outcome = item["output"][0].get("outcome")
        outcome = outcome if isinstance(outcome, Mapping) else {}
        cut = item.get("max_output_length")
        is_whole = outcome.get("type") != "timeout" and (cut is None or len(text) < int(cut))
        said |= {"complete": is_whole, "exit_code": outcome.get("exit_code")}
    return ToolResult(name, arguments, text, call_id, batch, **said)
