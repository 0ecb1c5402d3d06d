"""The lines of a Claude Code transcript, one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from readcache.messages.tools import LINE_NUMBER

Entry = Mapping[str, Any]
WRITERS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
# In the response of a command: the model was shown something other than its stdout.
NOT_SHOWN = ("interrupted", "isImage", "persistedOutputPath", "rawOutputPath", "backgroundTaskId")
_NUMBER = re.compile(rf"{LINE_NUMBER}|^ *\d{{1,9}}-")  # the latter: context lines of `grep -n`


def read_entry(line: bytes) -> Entry:
    """What a line says; empty where it is damaged."""
    try:
        return as_dict(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def as_dict(value: object) -> Entry:
    """The value, if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def blocks_by(entry: Entry, key: str) -> Mapping[Any, Entry]:
    """The blocks of an entry's message by their id."""
    content = as_dict(entry.get("message")).get("content")
    blocks = map(as_dict, content if isinstance(content, list) else ())
    return {block[key]: block for block in blocks if isinstance(block.get(key), str)}


def message_of(entry: Entry) -> object:
    """What the entries of one answer share."""
    return as_dict(entry.get("message")).get("id") or entry.get("uuid")


def may_clear(request: Entry) -> bool:
    """True if the server was asked to edit more than thinking."""
    edits = as_dict(as_dict(request.get("params")).get("context_management")).get("edits") or ()
    return any(not str(as_dict(edit).get("type")).startswith("clear_thinking") for edit in edits)


def lines_in(value: object) -> set[str]:
    """The lines of all strings inside a value, without the numbers in front of them."""
    if isinstance(value, str):
        return set(map(bare, value.split("\n")))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(lines_in, inner))


def bare(line: str) -> str:
    """The line without the number in front of it."""
    return _NUMBER.sub("", line, count=1)
