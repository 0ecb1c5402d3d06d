"""Results of tools that a host's user brought: tells a session of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from readcache import Reply, Session, UsageError
from readcache.messages.tools import COMMANDS, DIRECTORIES, LinesRead, ToolUse, first_text, lines_read, tool_use
from readcache.transcripts.patches import patch_writes

_STATUS = r"[\[(<]?(?:(?:command|process) [a-z]+ with )?(?:exit|return)[ _]?(?:code|status)?[ :=]+-?\d+[\])>]?\.?"
_HEAD = re.compile(rf"{_STATUS}[ \t]*\n", re.IGNORECASE)
_TAIL = re.compile(rf"(?:\A|\n{{1,2}}){_STATUS}\s*\Z", re.IGNORECASE)
_LONGEST_TAIL = 200  # characters: a search from the beginning would try each line


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result, and what the host says about it. `None` means that it says nothing."""

    name: str
    arguments: Mapping[str, Any]
    output: str
    call_id: str
    batch: str
    is_error: bool = False
    complete: bool = True  # False: the tool cut the output or ran out of time
    exit_code: int | None = None
    cwd: str | None = None  # where a command ran
    lines: tuple[int, int | None] | None = None  # the first and last that were read; None for the end of the file
    frame: Callable[[str], tuple[str, str, str]] | None = None


Judge = Callable[[Session, ToolResult], "Reply | None"]  # a user's own way to tell a session; None: leave it alone


KINDS = ("bash", "read", "write", "other", "ignore")


def tool_kinds(given: Mapping[str, str | Judge] | None) -> dict[str, str | Judge]:
    """What the user says of tools, by name. UsageError for a kind that does not exist."""
    for name, kind in (given or {}).items():
        if kind not in KINDS and not callable(kind):
            raise UsageError(f"invalid kind {kind!r} of the tool {name}: use {', '.join(KINDS)} or a function")
    return dict(given or {})


def answer_tool(session: Session, result: ToolResult, kind: str | Judge | None = None) -> Reply | None:
    """The session's answer to a call; None: the result stays as it is. `kind`: what the tool is by the user's word,
    instead of its name and arguments (see `ToolUse`), or the user's own function. The answer is unconfirmed until the
    session is given a list that has it; a function of the user's may confirm it at once."""
    if callable(kind):
        return kind(session, result)
    use = tool_use(result.name, result.arguments)
    kind = kind or use.kind
    command, path = use.command or first_text(result.arguments, COMMANDS), use.path
    known: dict[str, Any] = {"call_id": result.call_id, "batch": result.batch, "commit": False}
    if kind == "ignore":
        return None
    if kind == "write" and (path is not None or use.patch is not None):
        if not result.is_error:
            _tell_writes(session, use, result.call_id)
        return None
    if kind == "bash" and command is not None:
        where = result.cwd or first_text(result.arguments, DIRECTORIES)
        whole = result.complete and not result.is_error  # an error's text may be the framework's
        known |= {"cwd": where, "complete": whole, "frame": result.frame or without_status}
        return session.observe(command, result.output, exit_code=result.exit_code, **known)
    read = LinesRead(*result.lines, numbered=False) if result.lines else lines_read(result.arguments, result.output)
    read = LinesRead(1, None, numbered=False) if read is None and result.is_error else read
    if kind == "read" and path is not None and read is not None:
        known |= {"numbered": read.numbered, "complete": result.complete, "failed": result.is_error}
        where = _on_disk(session, path)
        return session.observe_read(where, result.output, start=read.first, end=read.last, frame=result.frame, **known)
    known |= {"arguments": result.arguments, "frame": result.frame}
    return session.observe_tool(result.name, result.output, **known)


def _tell_writes(session: Session, use: ToolUse, call_id: str) -> None:
    if use.path is not None:
        session.wrote(_on_disk(session, use.path), content=use.content, call_id=call_id)
    for written in patch_writes(use.patch or "", session.root):
        session.wrote(written.path, call_id=call_id)


def without_status(text: str) -> tuple[str, str, str]:
    """(head, body, tail): a line like `Exit code: 1` in front or behind is the tool's own."""
    head = found.end() if (found := _HEAD.match(text)) else 0
    found = _TAIL.search(text, max(head, len(text) - _LONGEST_TAIL))
    tail = found.start() if found else len(text)
    return text[:head], text[head:tail], text[tail:]


def _on_disk(session: Session, path: str) -> str:
    """The path as commands know it: some tools' paths begin at the project (`/app.py`)."""
    below = os.path.join(session.root, path.lstrip("/"))
    is_virtual = path.startswith("/") and not os.path.exists(path) and os.path.exists(below)
    return below if is_virtual else path
