"""The record of a call of some host's tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from readcache.messages.tools import DIRECTORIES, first_text, lines_read, tool_use
from readcache.model.paths import canonical_path
from readcache.transcripts.patches import patch_writes, replaced_lines
from readcache.transcripts.records import AskedCommand, AskedRead, AskedTool, RecordedCall, Written
from readcache.transcripts.values import chars_in, said_in

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
    use = tool_use(name, given)
    said = said_in(given) if said is None else said
    word = name if use.kind == "ignore" else use.kind
    asked: AskedCommand | AskedRead | AskedTool | None = None
    writes: tuple[Written, ...] = ()
    replaced = ""
    if use.kind == "bash":
        where = canonical_path(first_text(given, DIRECTORIES) or "", cwd)
        asked = AskedCommand(use.command or "", where, head, exit_code, tail)
        complete = complete and not failed
    elif use.kind == "write":
        word = "edit" if use.content is None else "write"
        own = (Written(canonical_path(use.path, cwd), use.content),) if use.path is not None else ()
        writes = own + (patch_writes(use.patch or said, cwd) if use.patch is not None else ())
        replaced = replaced_lines(given, None if use.patch is None else use.patch or said)
    elif output and not failed and use.kind != "ignore":
        if use.kind == "read":
            asked = _read_of(canonical_path(use.path or "", cwd), given, output)
        word, asked = ("read", asked) if asked is not None else (name, AskedTool(name, given))
    known: dict[str, Any] = {"arguments": chars_in(given), "replaced": replaced, "complete": complete}
    return RecordedCall(call_id, word, asked, said, output, batch, () if failed else writes, **known)


def _read_of(path: str, given: Mapping[str, Any], output: str) -> AskedRead | None:
    read = lines_read(given, output)
    if read is None:
        return None
    tail = 2 if _NOTICE.search(output) and not read.numbered else 0
    return AskedRead(path, read.first, read.last, read.numbered, tail=tail)
