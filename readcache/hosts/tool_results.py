"""Results of tools that a host's user brought: what a call does is guessed from the tool's name and its arguments.

A guess costs a saving where it is wrong, and no fact: what is left out is compared byte for byte, whatever a call is
taken for. Arguments that are not understood make a read "other": nothing is said then of lines of a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from readcache import Reply, Session

_READS = ("read", "read_file", "read_text_file", "file_read", "view", "view_file", "open_file", "cat_file", "get_file")
_WRITES = (
    *("write", "write_file", "file_write", "create", "create_file", "save_file", "append_file", "insert"),
    *("edit", "edit_file", "file_edit", "multi_edit", "update_file", "str_replace", "str_replace_in_file"),
    *("replace_in_file", "search_replace", "patch_file", "delete", "delete_file"),
)
_EDITOR_VERBS = ("view", "create", "str_replace", "insert", "undo_edit")  # Anthropic's text editor: one tool for all
_COMMANDS, _CONTENTS = ("command", "cmd"), ("content", "file_text", "contents")
_PATHS = ("file_path", "path", "filename", "file", "filepath", "target_file", "absolute_path")
_DIRECTORIES = ("cwd", "workdir", "working_dir", "working_directory", "directory")
_SPANS = (("start", "end"), ("start_line", "end_line"), ("first_line", "last_line"), ("line_start", "line_end"))
_SAYS_NOTHING = frozenset((*_PATHS, "view_range", "encoding", "description", "explanation", "reason"))
_STATUS = r"[\[(<]?(?:(?:command|process) [a-z]+ with )?(?:exit|return)[ _]?(?:code|status)?[ :=]+-?\d+[\])>]?\.?"
_STATUS_LINE = re.compile(rf"(?P<head>\A{_STATUS}[ \t]*\n)|(?P<tail>(?:\A|\n{{1,2}}){_STATUS}\s*\Z)", re.IGNORECASE)


_NUMBERED = re.compile(r"^ *0*(\d+)(?:\t|→|: ?| ?\| ?)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result, and what the host says of it. Of `None` it says nothing."""

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


def guess_kind(name: str, arguments: Mapping[str, Any]) -> str:
    """The kind of a tool: "bash", "read", "write" or "other". Names of MCP tools may have their server in front."""
    words = re.split(r"__|[.:/]", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())[-1]
    command, has_path = _first(arguments, _COMMANDS), _first(arguments, _PATHS) is not None
    if has_path and command in _EDITOR_VERBS:
        return "read" if command == "view" else "write"
    if command is not None:
        return "other" if has_path else "bash"
    return "other" if not has_path else "read" if words in _READS else "write" if words in _WRITES else "other"


def answer_tool(session: Session, result: ToolResult, kind: str) -> Reply | None:
    """The session's answer to a call of that kind, see `guess_kind`; or "ignore". None: the result stays as it is."""
    known: dict[str, Any] = {"call_id": result.call_id, "batch": result.batch}
    command, path = _first(result.arguments, _COMMANDS), _first(result.arguments, _PATHS)
    if kind == "ignore":
        return None
    if kind == "write" and path is not None:
        if not result.is_error:
            content = _first(result.arguments, _CONTENTS)
            session.wrote(_on_disk(session, path), content=content, call_id=result.call_id)
        return None
    if kind == "bash" and command is not None:
        where = result.cwd or _first(result.arguments, _DIRECTORIES)
        known |= {"cwd": where, "complete": result.complete, "frame": result.frame or without_status}
        return session.observe(command, result.output, exit_code=result.exit_code, **known)
    lines = result.lines or _lines_asked(result.arguments) or _lines_from(result.arguments, result.output)
    if kind == "read" and path is not None and lines is not None:
        numbered = result.frame is None and _is_numbered(result.output, lines[0])
        if numbered or command is None:  # an editor's view of a directory has no numbers
            known |= {"numbered": numbered, "complete": result.complete, "failed": result.is_error}
            where = _on_disk(session, path)
            return session.observe_read(where, result.output, start=lines[0], end=lines[1], frame=result.frame, **known)
    return session.observe_tool(result.name, result.output, arguments=result.arguments, frame=result.frame, **known)


def without_status(text: str) -> tuple[str, str, str]:
    """(head, body, tail): a line like `Exit code: 1` in front or behind is the tool's own."""
    ends = {found.lastgroup: found.span() for found in _STATUS_LINE.finditer(text)}
    low, high = ends.get("head", (0, 0))[1], ends.get("tail", (len(text), 0))[0]
    return (text[:low], text[low:high], text[high:]) if low <= high else ("", text, "")


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these arguments that is given as a text."""
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def _lines_asked(arguments: Mapping[str, Any]) -> tuple[int, int | None] | None:
    """The first line and the last (None: the end of the file) that a read asked for; None where that is not certain."""
    given = {name: value for name, value in arguments.items() if value not in (None, False, "")}
    span = given.get("view_range")
    spans = [(given.pop(low, None), given.pop(high, None)) for low, high in _SPANS]
    found = next((pair for pair in spans if pair != (None, None)), (None, None))
    if span is not None:
        found = (span[0], None if span[1] == -1 else span[1]) if isinstance(span, list) and len(span) == 2 else ("", "")
    verb = {"command"} if given.get("command") == "view" else set()
    if given.keys() - _SAYS_NOTHING - verb or not all(value is None or type(value) is int for value in found):
        return None
    return found[0] or 1, found[1]


def _lines_from(arguments: Mapping[str, Any], output: str) -> tuple[int, int] | None:
    """The lines of a read from an `offset`, which counts from 0 or from 1: as the numbers in front of them say."""
    rest = {name: value for name, value in arguments.items() if name not in ("offset", "limit")}
    offset = arguments.get("offset") or 0
    numbers = [int(found) for found in _NUMBERED.findall(output)]
    if _lines_asked(rest) != (1, None) or not numbers or numbers[0] not in (offset, offset + 1):
        return None
    return (numbers[0], numbers[-1]) if numbers[-1] - numbers[0] + 1 == len(numbers) else None


def _is_numbered(output: str, first: int) -> bool:
    """True if a line near the top has the number of the first line in front."""
    top = "\n".join(output.split("\n", 5)[:5])
    return re.search(rf"^\s*0*{first}(?:\t|→|: ?| ?\| ?)", top, re.MULTILINE) is not None


def _on_disk(session: Session, path: str) -> str:
    """The path as commands know it: some tools' paths begin at the project (`/app.py`)."""
    below = os.path.join(session.root, path.lstrip("/"))
    is_virtual = path.startswith("/") and not os.path.exists(path) and os.path.exists(below)
    return below if is_virtual else path
