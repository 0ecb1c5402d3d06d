"""Results of Claude Code's tools: which part of each is judged, and how the reply goes back into the tool's schema."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from readcache import Omitted, Outcome, Reason, Reply, Session, Shown
from readcache.core.model.reply import without_omissions
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall
from readcache.hosts.tool_results import with_numbers
from readcache.transcripts.claude_code import NOT_SHOWN, WRITERS
from readcache.transcripts.tools import bare

Event = Mapping[str, Any]
MOST_SHOWN = 30_000  # characters of a command's output; for longer ones the model gets a preview of 2 KB


class Judged(NamedTuple):
    """A result that may lose lines. `call`: its call. `put`: returns the tool's response with a reply instead of the
    output."""

    call: ToolCall
    put: Callable[[Reply], Any]


def judged(event: Event, session: Session, cwd: str | None) -> Judged | None:
    """Return the part of this event's result to judge, or None if nothing in it may be omitted.

    A call that changes files, or whose output is not shown, is only recorded in the session. `cwd`: the directory in
    which a command began, or None if it is not known.
    """
    name, given, response = event["tool_name"], event["tool_input"], event.get("tool_response")
    call = ToolCall(event["tool_use_id"], name, given, "")
    if name == "Bash":
        call = replace(call, asked=AskedCommand(given["command"]), cwd=cwd or event["cwd"])
        return _command(call, response if cwd else None, session)
    if name in WRITERS and response is not None:
        tell_write(call, session)
    elif name == "Read" and isinstance(response, dict):
        return _file(call, response)
    elif response is not None:
        return _text(call, response)
    return None


def tell_write(call: ToolCall, session: Session) -> None:
    """Record in the session a file that Claude Code's own tool wrote."""
    given: Any = call.arguments
    path, content = given.get("file_path") or given["notebook_path"], given.get("content")
    session.wrote(path, content=content if call.name == "Write" else None, call_id=call.call_id)


def _command(call: ToolCall, response: Any, session: Session) -> Judged | None:
    for path in _changed_files(response):
        session.wrote(os.path.join(call.cwd, path), call_id=call.call_id)
    shown = response.get("stdout") if isinstance(response, dict) else None
    if not isinstance(shown, str) or any(response.get(name) for name in NOT_SHOWN) or len(shown) >= MOST_SHOWN:
        session.answer(replace(call, complete=False))  # it may have written files
        return None
    status = None if response.get("returnCodeInterpretation") else 0
    call = with_numbers(replace(call, output=shown, exit_code=status), shown, session)
    return Judged(call, lambda reply: {**response, "stdout": reply.text})


def _changed_files(response: Any) -> list[str]:
    """Return the paths of the files that the command changed, if Claude Code reports them (since 2.1.269,
    `bashEditDiffEnabled`)."""
    # Only the user is shown the diff, so none of its lines count as seen.
    told = response.get("bashEditDiff") if isinstance(response, dict) else None
    paths = told.get("changedFiles") if isinstance(told, dict) else None
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []


def _file(call: ToolCall, response: Mapping[str, Any]) -> Judged | None:
    file = response.get("file")
    if response.get("type") != "text" or not isinstance(file, dict):
        return None
    start, count, content = file["startLine"], file["numLines"], file["content"]
    end = None if start + count > file["totalLines"] else start + count - 1
    asked = AskedRead(file["filePath"], start, end, numbered=False, edges_only=True)
    call = replace(call, output=content, asked=asked)
    return Judged(call, lambda reply: {**response, "file": {**file, **_renumbered(reply, start)}})


def _renumbered(reply: Reply, start: int) -> dict[str, Any]:
    """Return the fields of a read file for a reply. The host numbers the lines that it is given, so `startLine` is
    chosen to let the shown lines keep their numbers. A marker before them gets the number of the line before."""
    text = reply.text if isinstance(reply.segments[-1], Shown) else reply.text.removesuffix("\n")
    if reply.outcome is Outcome.PARTIAL:
        for segment in reply.segments:
            if isinstance(segment, Shown):
                break
            start += segment.end - segment.start
    return {"content": text, "numLines": text.count("\n") + 1, "startLine": start}


def _text(call: ToolCall, response: Any) -> Judged | None:
    """Return the text of a search, or of an MCP server's tool, to judge. Return None if the result is not a single
    text."""
    if isinstance(response, str):
        return Judged(replace(call, output=response), lambda reply: reply.text)
    if isinstance(response, dict) and isinstance(response.get("content"), str):
        call = replace(call, output=response["content"])
        return Judged(call, lambda reply: {**response, "content": reply.text})
    if isinstance(response, list) and len(response) == 1 and isinstance(response[0].get("text"), str):
        call = replace(call, output=response[0]["text"])
        return Judged(call, lambda reply: [{**response[0], "text": reply.text}])
    return None


def proven_reply(
    call: ToolCall,
    is_proven: Callable[[Reply], bool],
    session: Session,
    told: Callable[[Reply], object] = lambda _: None,
    *,
    commit: bool = False,
) -> Reply | None:
    """Return the reply if it is recalled text, or if it omits lines and this is proven. Otherwise return None: the
    result is shown as it is.

    Without `commit`, the reply is unconfirmed, because the host shows it later, or not at all. `told` is called with
    the reply, or with the full text if it replaces the reply.
    """
    reply = session.answer(call, commit=commit)
    if reply.outcome is not Outcome.FULL and not is_proven(reply):
        session.reader.settle(reply.call_id, reply.full_text, Reason.NOT_PROVEN)
        reply = without_omissions(reply, Reason.NOT_PROVEN)
    told(reply)
    return None if reply.is_output else reply


def names_true_lines(reply: Reply, event: Event, session: Session) -> bool:
    """Return True if the omitted lines are the lines of the files that the markers name."""
    # Claude Code strips blank lines from the start of an output. So a command's output may begin at a later line than
    # the command asked for.
    gone = [(omitted, lines) for omitted, _, lines in reply.omissions()]
    return event["tool_name"] != "Bash" or all(_is_on_disk(session, *each) for each in gone)


def _is_on_disk(session: Session, omitted: Omitted, lines: list[str]) -> bool:
    if omitted.path is None:
        return True
    there = session.read(omitted.path, start=omitted.start, end=omitted.end, fresh=True)
    return list(map(bare, there.text.removesuffix("\n").split("\n"))) == list(map(bare, lines))
