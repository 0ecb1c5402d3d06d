"""Sessions in the plain form of this project's recordings: one a line, each call a record with its result.

    {"id": …, "source": …, "agent": …, "records": [{"tool": "bash", "input": {"command": …}, "output": …, "cwd": …}]}

Its results of other tools than shells and readers are counted and not judged: what those tools were is not recorded
well enough. `_compact` marks where the conversation was cut. The package does not know this form: `register` adds it,
and `python -m tests.replay.plain_form replay PATH` is `readcache replay PATH` with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall, Written
from readcache.transcripts.files import LINE_MARKS
from readcache.transcripts.formats import FORMS, Form
from readcache.transcripts.records import Content, HistoryRemoval, Item, Recording
from readcache.transcripts.tools import replaced_lines
from readcache.transcripts.values import said_in

NAME = "normalised"
DIRECTORY = "/testbed"  # of commands that say none: where SWE-bench keeps the repository
_ERROR = re.compile(
    r"^(<tool_use_error>|Error|ERROR:|File does not exist|EISDIR|File content \(|The file .* does not exist|Exit code)"
)


def register() -> None:
    """Replays and reports in this process understand the form from now on."""
    if not any(form.name == NAME for form in FORMS):
        FORMS.insert(0, Form(NAME, is_normalised, load_normalised))
        LINE_MARKS.append(b'"records"')


def is_normalised(row: Mapping[str, Any]) -> bool:
    """True for a line of this form."""
    return isinstance(row.get("records"), list) and "id" in row


def load_normalised(content: Content) -> Iterator[Recording]:
    """Each line is a conversation with one reader."""
    for line, row in content.objects():
        if not is_normalised(row):
            content.damage.add(content.path, line)
            continue
        items = tuple(item_of(f"c{n}", record) for n, record in enumerate(row["records"]))
        agent = str(row.get("agent") or row.get("source") or "")
        directory = str(row["records"][0].get("cwd") or "") if row["records"] else ""
        yield Recording(str(row["id"]), NAME, items, agent=agent, directory=directory)


def item_of(name: str, record: Mapping[str, Any]) -> Item:
    """A record, under this call id."""
    tool, given, output = record["tool"], record["input"], record["output"]
    if tool == "_compact":
        return HistoryRemoval()
    call = ToolCall(name, tool, given, output, tool=tool)
    if tool == "bash" and isinstance(given.get("command"), str):
        asked = AskedCommand(given["command"])
        return replace(call, asked=asked, cwd=record.get("cwd") or DIRECTORY, said=given["command"])
    path = given.get("path")
    if tool == "read" and path:
        start = max(1, _number(given.get("offset") or (given.get("view_range") or [1])[0]) or 1)
        limit = _number(given.get("limit"))
        read = AskedRead(str(path), start, start + limit - 1 if limit else None)
        return replace(call, asked=read, said=str(path))
    writes: tuple[Written, ...] = ()
    if tool in ("edit", "write", "patch") and path and not _ERROR.match(output):
        writes = (Written(str(path), given.get("content") or given.get("file_text")),)
    patch = given.get("patch") if tool == "patch" else None
    replaced = replaced_lines(given, patch if isinstance(patch, str) else None) if tool in ("edit", "patch") else ""
    return replace(call, is_judged=False, said=said_in(given), writes=writes, replaced=replaced)


def _number(value: object) -> int | None:
    """Models send numbers as text, lists or nonsense now and then."""
    try:
        return int(value)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return None


if __name__ == "__main__":
    from readcache.cli.main import main
    from tests.replay import plain_form

    plain_form.register()  # that module's functions, which the processes of a replay can import
    sys.exit(main(sys.argv[1:]))
