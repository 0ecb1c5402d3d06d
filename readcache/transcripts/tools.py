"""What a call of some host's tool asks for: guessed from its name and arguments, as hosts' users name their tools.

A wrong guess costs a saving and no fact: what is left out is compared byte for byte.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from readcache.transcripts.patches import patch_writes
from readcache.transcripts.records import AskedCommand, AskedRead, AskedTool, RecordedCall, Written
from readcache.transcripts.values import int_in, list_in, said_in

_READS = frozenset(
    ("read", "read_file", "read_text_file", "file_read", "view", "view_file", "open_file", "cat_file", "get_file")
)
_WRITES = frozenset(
    (
        *("write", "write_file", "file_write", "create", "create_file", "save_file", "append_file", "insert"),
        *("edit", "edit_file", "file_edit", "multi_edit", "multiedit", "update_file", "str_replace", "replace"),
        *("str_replace_in_file", "replace_in_file", "search_replace", "delete_file"),
    )
)
_PATCHES = frozenset(("apply_patch", "patch"))
# Their results say nothing that could be a source, or are parsed by the host.
_NEVER_JUDGED = frozenset(
    (
        *("todowrite", "todo_write", "update_plan", "report_intent", "ask_user", "question", "think"),
        *("finish", "submit", "exit_plan_mode"),
    )
)
_EDITOR_VERBS = frozenset(("view", "create", "str_replace", "insert", "undo_edit"))
_COMMANDS, _CONTENTS = ("command", "cmd", "script"), ("content", "file_text", "contents")
_PATHS = ("file_path", "filePath", "path", "filename", "file", "filepath", "target_file", "absolute_path")
_PATCH_TEXTS = ("patchText", "patch_text", "patch", "input", "diff")
_DIRECTORIES = ("cwd", "workdir", "working_dir", "working_directory", "directory")
_NUMBERED = re.compile(r"^ *0*(\d+)(?:\t|→|: ?| ?\| ?|\. )", re.MULTILINE)
_NOTICE = re.compile(r"\n\n\[(?:Showing lines|\d+ more lines|Truncated)[^\n]*\]\n?\Z")


def recorded_call(
    call_id: str,
    output: str,
    batch: str,
    *,
    name: str,
    given: Mapping[str, Any],
    cwd: str,
    failed: bool = False,
    exit_code: int | None = 0,
    complete: bool = True,
    head: int = 0,
    tail: int = 0,
    said: str | None = None,
) -> RecordedCall:
    """The record of a call. `cwd`: where commands begin that name no directory. `said`: what the agent wrote, where the
    arguments do not have it verbatim. `head`, `tail`: lines around a command's output that are the host's."""
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.split(r"__|[.:/]", name)[-1]).lower()
    said = said_in(given) if said is None else said
    command, path = _first(given, _COMMANDS), _first(given, _PATHS)
    if path is not None and command in _EDITOR_VERBS:
        word, command = "view" if command == "view" else "edit", None
    asked: AskedCommand | AskedRead | AskedTool | None = None
    writes: tuple[Written, ...] = ()
    if command is not None and path is None:
        inner = _first(given, _DIRECTORIES)
        asked = AskedCommand(command, os.path.join(cwd, inner) if inner else cwd, head, exit_code, tail)
        word, complete = "bash", complete and not failed
    elif word in _PATCHES:
        writes = patch_writes(_first(given, _PATCH_TEXTS) or said, cwd)
    elif path is not None and word in _WRITES:
        content = _first(given, _CONTENTS)
        word, writes = "edit" if content is None else "write", (Written(os.path.join(cwd, path), content),)
    elif output and not failed and word not in _NEVER_JUDGED:
        if path is not None and word in _READS:
            asked = _read_of(os.path.join(cwd, path), given, output)
        word, asked = ("read", asked) if asked is not None else (word, AskedTool(name, given))
    return RecordedCall(call_id, word, asked, said, output, batch, () if failed else writes, complete)


def _read_of(path: str, given: Mapping[str, Any], output: str) -> AskedRead | None:
    """The lines that were asked for. The numbers in front of them say more than an `offset`, which counts from 0 or 1.
    None for a listing of a directory."""
    if "<type>directory</type>" in output[:1000]:
        return None
    span = [int_in(value) for value in list_in(given.get("view_range"))]
    start = span[0] if span else int_in(given.get("offset") or given.get("start_line") or given.get("start"))
    limit = int_in(given.get("limit"))
    end = span[1] if len(span) > 1 and span[1] != -1 else int_in(given.get("end_line") or given.get("end"))
    found = _NUMBERED.search(output)
    numbered = found is not None and len(_NUMBERED.findall(output)) * 2 > output.count("\n")
    first = int(found[1]) if found is not None and numbered else max(1, start or 1)
    tail = 2 if _NOTICE.search(output) else 0
    return AskedRead(path, first, first + limit - 1 if limit else end, numbered, tail=0 if numbered else tail)


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of these arguments that is given as a text."""
    return next((given[name] for name in names if isinstance(given.get(name), str)), None)
