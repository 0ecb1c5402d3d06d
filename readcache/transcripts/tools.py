"""Find what a recorded call of any host's tool did.

For edits and patches (in the format of OpenAI's `apply_patch`), find the files they write and the old lines they need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from readcache.core.messages.tools import (
    DIRECTORIES,
    LINE_NUMBER,
    ToolUse,
    first_text,
    lines_read,
    replacements,
    tool_use,
)
from readcache.core.model.call import Frame
from readcache.core.model.paths import canonical_path
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall, Written
from readcache.transcripts.values import said_in

_NOTICE = re.compile(r"\n\n\[(?:Showing lines|\d+ more lines|Truncated)[^\n]*\]\n?\Z")
_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_NUMBER = re.compile(rf"{LINE_NUMBER}|^ *\d{{1,9}}-")  # the latter: context lines of `grep -n`


def bare(line: str) -> str:
    """Return the line without the number before it."""
    return _NUMBER.sub("", line, count=1)


def understood(call: ToolCall) -> ToolCall:
    """Return the recorded call with its effects, if its tool's name and its arguments show them.

    The call's `cwd` is the directory for commands that name none. Its `frame` applies only to a command's output.
    """
    given, use = call.arguments, tool_use(call.name, call.arguments)
    said = call.said or said_in(given)
    plain = replace(call, said=said, tool=use.kind, frame=None, is_judged=False)
    if use.kind == "ignore":
        return replace(plain, tool=call.name)
    if use.kind == "bash":
        where = canonical_path(first_text(given, DIRECTORIES) or "", call.cwd)
        asked, whole = AskedCommand(use.command or ""), call.complete and not call.is_error
        return replace(plain, asked=asked, cwd=where, complete=whole, frame=call.frame, is_judged=True)
    if use.kind == "write":
        patch = None if use.patch is None else use.patch or said
        return replace(
            plain,
            tool="edit" if use.content is None else "write",
            writes=() if call.is_error else _writes(use, patch, call.cwd),
            replaced=replaced_lines(given, patch),
        )
    if call.is_error or not call.output:
        return plain
    read = lines_read(given, call.output) if use.kind == "read" else None
    if read is None:
        return replace(plain, tool=call.name, is_judged=True)
    frame = Frame(0, 2) if _NOTICE.search(call.output) and not read.numbered else None
    asked_lines = AskedRead(canonical_path(use.path or "", call.cwd), *read)
    return replace(plain, asked=asked_lines, frame=frame, is_judged=True)


def _writes(use: ToolUse, patch: str | None, cwd: str) -> tuple[Written, ...]:
    own = (Written(canonical_path(use.path, cwd), use.content),) if use.path is not None else ()
    return own + (patch_writes(patch, cwd) if patch is not None else ())


def patch_writes(patch: str, directory: str) -> tuple[Written, ...]:
    """Return the files that a patch writes or deletes. Relative paths start at `directory`.

    The content is always None, because each line in a patch begins with `+`.
    """
    return tuple(Written(canonical_path(found[1].strip(), directory)) for found in _FILE.finditer(patch))


def replaced_lines(given: Mapping[str, Any], patch: str | None = None) -> str:
    """Return the text that an edit replaces, or the context lines and removed lines of a patch."""
    if patch is not None:
        lines = (line for line in patch.splitlines() if not line.startswith("---"))
        return "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
    return "\n".join(old for old, _ in replacements(given))
