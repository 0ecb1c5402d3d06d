"""Gemini CLI: a hook after its shell and read tools, which may replace the result's text.

The chat's file shows what the model can still see, and each hook reads it first. It has every result as it was sent,
and the whole history again after each compression by the CLI. PreCompress is not used, because it comes before each
request, compressed or not. Events have no call IDs.

The replacement reaches the model as the call's "error", so it says that the call succeeded. Rewriting the command
instead would have two costs: the CLI adds a notice each time, and the user must approve the rewritten command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from readcache.hosts.gemini.check import nothing_forbids, settings_file, trial_chat
from readcache.hosts.host import HOOK_SECONDS, Entry, Host, InstallTarget, hook_entry
from readcache.hosts.plain_file import open_text
from readcache.transcripts.gemini import chat_messages, file_part, printed_by

if TYPE_CHECKING:
    from readcache import Reply, Session, Sessions
    from readcache.hosts.scripted import Scripted

_SUMMARY = "<state_snapshot>"  # the tag of a compression's summary, in the first message
_MILLISECONDS = 1000 * HOOK_SECONDS
_NO_ERROR = "Not an error: the call succeeded. Lines you can already see are omitted.\n"


def _hook(event: Mapping[str, Any], sessions: Sessions) -> Mapping[str, Any] | None:
    if not os.path.exists(event.get("transcript_path") or ""):
        return None
    if event.get("hook_event_name") == "BeforeModel":
        return _before_request(event, sessions)
    if event.get("hook_event_name") != "AfterTool":
        return None
    name, given, shown = event["tool_name"], event["tool_input"], event["tool_response"].get("llmContent")
    session, answered = sessions.get(event["session_id"]), None
    if name in ("replace", "write_file"):
        session.wrote(os.path.join(event["cwd"], given["file_path"]))
    if name in ("replace", "write_file") or _may_be_of_subagent(event):
        return None
    with open_text(event["transcript_path"]) as file:
        messages, batch = chat_messages(file)
    session.sync(messages, batch=batch)
    if name == "run_shell_command":
        answered = _after_command(session, given, event["cwd"], shown, batch)
    elif name == "read_file" and isinstance(shown, str) and not event["tool_response"].get("error"):
        answered = _after_read(session, given, event["cwd"], shown, batch)
    if answered is None or answered[0].outcome.value == "full":
        return None
    return {"decision": "deny", "reason": _NO_ERROR + answered[1]}  # denies nothing: replaces the result


def _before_request(event: Mapping[str, Any], sessions: Sessions) -> Mapping[str, Any] | None:
    """Return the request with a restored section after the summary of a compression, or None if there is nothing to
    add. The section is the same text in each request."""
    request, first = event["llm_request"], event["llm_request"]["messages"][0]
    if _SUMMARY not in first["content"]:
        return None
    session = sessions.get(event["session_id"])
    with open_text(event["transcript_path"]) as file:
        session.sync(chat_messages(file)[0])
    keep = [delivery.event.call_id for delivery in session.view.deliveries]
    # No marker names the section, because the chat's file does not have it.
    section = session.restored_section(first["content"], keep=keep)
    if not section:
        return None
    first["content"] += f"\n{section}"
    return {"hookSpecificOutput": {"hookEventName": "BeforeModel", "llm_request": request}}


def _may_be_of_subagent(event: Mapping[str, Any]) -> bool:
    """Return True if the event may come from a sub-agent: a sub-agent's file was changed no earlier than the chat's
    file.

    A sub-agent's calls have the ID and the file of the parent's chat. The sub-agent writes a file of its own, and the
    chat waits for it.
    """
    path, last = event["transcript_path"], os.stat(event["transcript_path"]).st_mtime_ns
    folder = os.path.join(os.path.dirname(path), event["session_id"])
    others = os.listdir(folder) if os.path.isdir(folder) else ()
    return any(os.stat(os.path.join(folder, other)).st_mtime_ns >= last for other in others)


def _after_command(
    session: Session, given: Mapping[str, Any], cwd: str, shown: object, batch: str
) -> tuple[Reply, str] | None:
    from dataclasses import replace

    from readcache.core.model.tool_call import AskedCommand, ToolCall
    from readcache.hosts.tool_results import with_numbers

    target, asked = os.path.join(cwd, given.get("dir_path") or ""), AskedCommand(given["command"])
    call = ToolCall(None, "run_shell_command", given, "", batch, cwd=target, asked=asked)
    printed = printed_by(shown)
    if printed is None:  # its output is not shown, but it may have written files
        session.answer(call)
        return None
    call = with_numbers(replace(call, output=printed.body, exit_code=printed.exit_code), printed.body, session)
    reply = session.answer(call, commit=False)
    return reply, f"{printed.head}{reply.text.removesuffix(chr(10))}{printed.tail}"


def _after_read(session: Session, given: Mapping[str, Any], cwd: str, shown: str, batch: str) -> tuple[Reply, str]:
    path, (head, first, body) = os.path.join(cwd, given["file_path"]), file_part(shown)
    end = first + len(body.split("\n")) - 1 if head else None
    reply = session.observe_read(path, body, start=first, end=end, batch=batch, commit=False)
    return reply, head + reply.text


def _changes(target: InstallTarget) -> Sequence[Entry]:
    tools, more = "^(run_shell_command|read_file|replace|write_file)$", {"name": "readcache", "timeout": _MILLISECONDS}
    events = {"AfterTool": tools, **({"BeforeModel": "*"} if target.mode == "on" else {})}
    return [
        hook_entry(target, "gemini", settings_file(target), event, which, **more) for event, which in events.items()
    ]


def _scripted() -> Scripted:
    from readcache.hosts.gemini.scripted import SCRIPTED

    return SCRIPTED


HOST = Host(
    "gemini",
    "advise",
    "a compression may keep a reply and drop what it points at, and no hook can rewrite it",
    _changes,
    _hook,
    in_force=nothing_forbids,
    trial=trial_chat,
    todo=lambda _: "start Gemini CLI anew, in a folder that it trusts",
    scripted=_scripted,
)
