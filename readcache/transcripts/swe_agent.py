"""SWE-agent: `.traj` files. Its first versions have a window on one file; later ones an editor, called as a command.

The file does not record the removals by SWE-agent's history processors. So everything counts as visible until the end.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from readcache.core.model.paths import canonical_path
from readcache.core.model.tool_call import AskedRead, ToolCall, Written
from readcache.transcripts.records import Content, Form, Item, Recording
from readcache.transcripts.tools import understood
from readcache.transcripts.values import list_in, object_in

_EDITORS = ("str_replace_editor", "str_replace_based_edit_tool")
_WINDOW = ("open", "goto", "scroll_down", "scroll_up", "create", "edit", "insert", "append")
_WRITES = ("create", "edit", "insert", "append")
_FILE = re.compile(r"\[File: (.+?) \(\d+ lines? total\)\]")
_LINE = re.compile(r"^(\d+):", re.MULTILINE)
_NOT_SHELL = ("submit", "exit", "exit_cost", "exit_context", "exit_format", "skip")


def is_swe_agent(row: Mapping[str, Any]) -> bool:
    """Return True for a trajectory."""
    steps = list_in(row.get("trajectory"))
    return bool(steps) and all("action" in object_in(step) and "observation" in object_in(step) for step in steps[:3])


def load_swe_agent(content: Content) -> Iterator[Recording]:
    """Yield one recording for each trajectory."""
    for line, row in content.objects():
        items: list[Item] = []
        cwd = "/"
        for number, step in enumerate(map(object_in, list_in(row.get("trajectory")))):
            action = str(step.get("action") or "").strip("\n")
            if action:
                items.append(_call(f"c{number}", action, str(step.get("observation") or ""), cwd))
            cwd = str(object_in(step.get("state")).get("working_dir") or cwd)
        name = str(row.get("environment") or "") + f" {content.location(line)}"
        yield Recording(name.strip(), "swe-agent", tuple(items), agent="swe-agent")


FORM = Form("swe-agent", is_swe_agent, load_swe_agent)


def _call(call_id: str, action: str, output: str, cwd: str) -> ToolCall:
    words = _words(action)
    word = words[0] if words else ""
    call = ToolCall(call_id, word, None, output, cwd=cwd, tool=word, said=action, is_judged=False)
    if word in _EDITORS and len(words) > 2:
        return understood(replace(call, arguments=_editor_arguments(words)))
    if word in _NOT_SHELL:
        return call
    if word in _WINDOW:
        found = _FILE.search(output)
        path = canonical_path(found[1], cwd) if found else ""
        if word in _WRITES:
            return replace(call, tool="edit", writes=(Written(path),) if path else ())
        first = _LINE.search(output)
        read = AskedRead(path, int(first[1])) if path and first else None
        return replace(call, tool="window", asked=read, is_judged=read is not None)
    return understood(replace(call, name="bash", arguments={"command": action}))


def _words(action: str) -> list[str]:
    try:
        return shlex.split(action)
    except ValueError:
        return action.split()


def _editor_arguments(words: list[str]) -> dict[str, Any]:
    """Return the arguments of an editor command such as `str_replace_editor view /f --view_range 1 50`."""
    given: dict[str, Any] = {"command": words[1], "path": words[2]}
    rest = words[3:]
    for name, value in pairwise(rest):
        if name.startswith("--") and name != "--view_range":
            given[name[2:]] = value
    if "--view_range" in rest:
        at = rest.index("--view_range") + 1
        numbers = re.findall(r"-?\d+", json.dumps(rest[at : at + 2]))
        given["view_range"] = [int(number) for number in numbers]
    return given
