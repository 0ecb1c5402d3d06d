"""The results of Claude Code's tools: which part of each is judged, and how the answer goes back into its schema."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from readcache import Omitted, Outcome, Reason, Reply, Session, Shown
from readcache.hosts.removed_lines import numbers_of
from readcache.model.reply import without_omissions
from readcache.transcripts.claude_code import NOT_SHOWN, WRITERS, bare

Event = Mapping[str, Any]
MOST_SHOWN = 30_000  # characters of a command's output; of a longer one the model gets a preview of 2 KB


class Judged(NamedTuple):
    """A result that may be left out: how it is judged, and the tool's response with a reply in its place."""

    answer: Callable[..., Reply]
    put: Callable[[Reply], Any]


def judged(event: Event, session: Session, cwd: str | None) -> Judged | None:
    """How the result of this event is judged. What changes files, or shows nothing, is told to the session. None:
    nothing in the result may be omitted. `cwd`: where a command began, None when that is not known."""
    name, given, response = event["tool_name"], event["tool_input"], event.get("tool_response")
    known = {"call_id": event["tool_use_id"]}
    if name == "Bash":
        known["cwd"] = cwd or event["cwd"]
        return _command(given["command"], response if cwd else None, session, known)
    if name in WRITERS and response is not None:
        path = given.get("file_path") or given["notebook_path"]
        session.wrote(path, content=given.get("content") if name == "Write" else None, **known)
    elif name == "Read" and isinstance(response, dict):
        return _file(response, session, known)
    elif response is not None:
        return _text(name, given, response, session, known)
    return None


def _command(command: str, response: Any, session: Session, known: Mapping[str, Any]) -> Judged | None:
    for path in _changed_files(response):
        session.wrote(os.path.join(known["cwd"], path), call_id=known["call_id"])
    shown = response.get("stdout") if isinstance(response, dict) else None
    if not isinstance(shown, str) or any(response.get(name) for name in NOT_SHOWN) or len(shown) >= MOST_SHOWN:
        session.observe(command, "", exit_code=None, complete=False, **known)  # it may have written files
        return None
    status = None if response.get("returnCodeInterpretation") else 0
    known = {**known, **numbers_of(command, shown, known["cwd"], session)}
    answer = partial(session.observe, command, shown, exit_code=status, **known)
    return Judged(answer, lambda reply: {**response, "stdout": reply.text})


def _changed_files(response: Any) -> list[str]:
    """The files that the command changed, where Claude Code tells (from 2.1.269 on, `bashEditDiffEnabled`). Their diff
    is drawn only for the user, so none of its lines count as seen."""
    told = response.get("bashEditDiff") if isinstance(response, dict) else None
    paths = told.get("changedFiles") if isinstance(told, dict) else None
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []


def _file(response: Mapping[str, Any], session: Session, known: Mapping[str, Any]) -> Judged | None:
    file = response.get("file")
    if response.get("type") != "text" or not isinstance(file, dict):
        return None
    start, count, content = file["startLine"], file["numLines"], file["content"]
    end = None if start + count > file["totalLines"] else start + count - 1
    answer = partial(session.observe_read, file["filePath"], content, start=start, end=end, edges_only=True, **known)
    return Judged(answer, lambda reply: {**response, "file": {**file, **_renumbered(reply, start)}})


def _renumbered(reply: Reply, start: int) -> dict[str, Any]:
    """The host numbers the lines that it is given: those that are shown keep theirs. A marker in front of them is
    numbered as the line before."""
    text = reply.text if isinstance(reply.segments[-1], Shown) else reply.text.removesuffix("\n")
    if reply.outcome is Outcome.PARTIAL:
        for segment in reply.segments:
            if isinstance(segment, Shown):
                break
            start += segment.end - segment.start
    return {"content": text, "numLines": text.count("\n") + 1, "startLine": start}


def _text(name: str, given: Any, response: Any, session: Session, known: Mapping[str, Any]) -> Judged | None:
    """A search, or a tool of an MCP server."""
    answer = partial(session.observe_tool, name, arguments=given, **known)
    if isinstance(response, str):
        return Judged(partial(answer, response), lambda reply: reply.text)
    if isinstance(response, dict) and isinstance(response.get("content"), str):
        return Judged(partial(answer, response["content"]), lambda reply: {**response, "content": reply.text})
    if isinstance(response, list) and len(response) == 1 and isinstance(response[0].get("text"), str):
        return Judged(partial(answer, response[0]["text"]), lambda reply: [{**response[0], "text": reply.text}])
    return None


def proven_reply(
    answer: Callable[..., Reply],
    is_proven: Callable[[Reply], bool],
    session: Session,
    told: Callable[[Reply], object] = lambda _: None,
) -> Reply | None:
    """Return the reply if it omits lines and that is proven, else None: the result is shown as it is. `answer`: one of
    the session's `observe` methods with its arguments, but not `commit`: whether the host shows the reply is known
    later. `told` is given the reply that is shown."""
    reply = answer(commit=False)
    is_full = reply.outcome is Outcome.FULL
    if not is_full and not is_proven(reply):
        session.reader.settle(reply.call_id, reply.full_text, Reason.NOT_PROVEN)
        reply, is_full = without_omissions(reply, Reason.NOT_PROVEN), True
    told(reply)
    return None if is_full else reply


def names_true_lines(reply: Reply, event: Event, session: Session) -> bool:
    """True if what was omitted are the lines of the files that markers name. Claude Code strips blank lines from an
    output's start, so the lines of a command's output may differ from the ones it asked for."""
    gone = [(omitted, lines) for omitted, _, lines in reply.omissions()]
    return event["tool_name"] != "Bash" or all(_is_on_disk(session, *each) for each in gone)


def _is_on_disk(session: Session, omitted: Omitted, lines: list[str]) -> bool:
    if omitted.path is None:
        return True
    there = session.read(omitted.path, start=omitted.start, end=omitted.end, fresh=True)
    return list(map(bare, there.text.removesuffix("\n").split("\n"))) == list(map(bare, lines))
