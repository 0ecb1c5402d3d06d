"""Gemini CLI: a hook after its shell and read tools, which may replace the result's text.

The chat's file shows what the model can still see, and each hook reads it first. It has every result as it was sent,
and the whole history again after each compression by the CLI. PreCompress is not used, because it comes before each
request, compressed or not. Events have no call IDs.

The replacement reaches the model as the call's "error", so it says that the call succeeded. Rewriting the command
instead would have two costs: the CLI adds a notice each time, and the user must approve the rewritten command.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from readcache.hosts.host import HOOK_SECONDS, Entry, Host, InstallTarget, Scripted, hook_entry, stream
from readcache.hosts.plain_file import open_text
from readcache.transcripts.gemini import chat_messages, file_part, printed_by

if TYPE_CHECKING:
    from readcache import Reply, Session, Sessions

_SUMMARY = "<state_snapshot>"  # the tag of a compression's summary, in the first message
_MILLISECONDS = 1000 * HOOK_SECONDS
_NO_ERROR, _OMITTED = "Not an error: the call succeeded.", " Lines you can already see are omitted."


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
    if answered is None or answered[0].is_output:
        return None
    said = _OMITTED if answered[0].omissions() else ""
    return {"decision": "deny", "reason": f"{_NO_ERROR}{said}\n{answered[1]}"}  # denies nothing: replaces the result


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


def _settings_file(target: InstallTarget) -> str:
    """Return the path of the project's or the user's settings file, which has the hooks."""
    home = target.environment.get("GEMINI_CLI_HOME") or target.home
    return os.path.join(home if target.is_user else target.root, ".gemini", "settings.json")


def _changes(target: InstallTarget) -> Sequence[Entry]:
    tools, more = "^(run_shell_command|read_file|replace|write_file)$", {"name": "readcache", "timeout": _MILLISECONDS}
    events = {"AfterTool": tools, **({"BeforeModel": "*"} if target.mode == "on" else {})}
    return [
        hook_entry(target, "gemini", _settings_file(target), event, which, **more) for event, which in events.items()
    ]


# ---------------------------------------------------------------- doctor


def nothing_forbids(target: InstallTarget) -> str:
    """Return a sentence that says no setting disables the hook. Raise ReadcacheError if the user's or the project's
    settings file does."""
    from readcache import ReadcacheError
    from readcache.hosts.settings_files.settings_text import settings_in

    for is_user in (True, False):
        path = _settings_file(target._replace(is_user=is_user))
        config = settings_in(path).get("hooksConfig", {})
        if config.get("enabled", True) is not True:
            raise ReadcacheError(f"{path} disables all hooks: remove hooksConfig.enabled from it")
        if "readcache" in config.get("disabled", ()):
            raise ReadcacheError(f"{path} disables the hook: remove readcache from hooksConfig.disabled")
    return "no setting switches it off" + ("" if target.is_user else "; it runs where the folder is trusted")


def trial_chat(directory: str) -> list[dict[str, Any]]:
    """Return the events of two reads of one file. The hook must shorten the second."""
    from readcache.hosts.checks import TEXT, two_reads

    def shown(name: str) -> list[dict[str, Any]]:
        part = {"functionResponse": {"id": name, "response": {"output": TEXT}}}
        return [{"id": name, "content": [part]}]

    event: dict[str, Any] = {
        "hook_event_name": "AfterTool",
        "tool_name": "read_file",
        "tool_input": {"file_path": "file"},
    }
    event["tool_response"] = {"llmContent": TEXT}
    return two_reads(directory, event, lambda name: [{"id": f"before {name}"}], shown)


_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
}


def _answer(path: str, _: int, command: str) -> str:
    call = {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}
    parts = [call] if command else [{"text": "done"}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}
    answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}
    return stream([answer]) if "stream" in path else json.dumps(answer)


SCRIPTED = Scripted(
    ("gemini", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", "go on"),
    lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none", "GEMINI_CLI_NO_RELAUNCH": "1"},
    lambda _: {".gemini/settings.json": json.dumps(_SETTINGS)},
    '"functionResponse"',
    _answer,
)


HOST = Host(
    "gemini",
    "advise",
    "a compression may keep a reply and drop what it points at, and no hook can rewrite it",
    _changes,
    _hook,
    in_force=nothing_forbids,
    trial=trial_chat,
    todo=lambda _: "start Gemini CLI anew, in a folder that it trusts",
    scripted=SCRIPTED,
)
