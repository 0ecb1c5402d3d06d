"""GitHub Copilot CLI: a hook after each tool that succeeded, which may replace the result's text.

The session's file of events shows what the model can still see, and each hook reads it first, up to the entry of the
hook itself. Copilot writes the file at most 0.1 seconds late. Without that entry, nothing is omitted. The events of
hooks have no call IDs: the file has them.

A compaction removes what came before its start and keeps what came later. So nothing is omitted while one runs, and a
marker never loses its source.

The Copilot SDK starts the same CLI, see `copilot_sdk`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from readcache.hosts.host import HOOK_SECONDS, Entry, Host, InstallTarget, Json, Scripted, chat_answer

if TYPE_CHECKING:
    from readcache import Reply, Session, Sessions
    from readcache.transcripts.copilot import CopilotEvents

Event = Mapping[str, Any]
PAUSE, SOON, PATIENCE = 0.01, 0.2, 0.5  # seconds; Copilot writes new entries every 0.1 s, or never


def copilot_hook(
    event: Event, sessions: Sessions, told: Callable[[Reply], object] = lambda _: None
) -> dict[str, Any] | None:
    """Return the answer to an event of `postToolUse`, or None to change nothing. `told` is called with each Reply."""
    result = event.get("toolResult")
    path = event.get("transcriptPath") or events_file(event, copilot_home(os.environ))
    if not isinstance(result, dict) or not isinstance(result.get("textResultForLlm"), str):
        return None
    if not _waited(lambda: os.path.exists(path), SOON):
        return None  # without the file, nothing shows what the model can still see
    conversation = _read(path, event)
    is_there, call_id = conversation.find_call(event["toolName"], event["toolArgs"])
    if not conversation.has_hook or not is_there:
        return None
    session = sessions.get(_owner(event), event.get("agentId") or "main")
    session.sync(conversation.messages, batch=conversation.batch)
    reply = _answer(event, session, conversation, call_id)
    if reply is None:
        return None
    told(reply)
    if reply.is_output:
        return None
    return {"modifiedResult": {**result, "textResultForLlm": reply.text}}


def copilot_home(environment: Mapping[str, str]) -> str:
    """Return the directory of Copilot's own files."""
    return environment.get("COPILOT_HOME") or os.path.expanduser("~/.copilot")


def events_file(event: Event, home: str) -> str:
    """Return the path of the session's file. `home`: see `copilot_home`. A sub-agent has the file of its parent."""
    return os.path.join(home, "session-state", str(_owner(event)), "events.jsonl")


def _owner(event: Event) -> Any:
    return event.get("parentAgentId") or event["sessionId"]


def _read(path: str, event: Event) -> CopilotEvents:
    from readcache.hosts.plain_file import open_text
    from readcache.transcripts.copilot import CopilotEvents

    conversation = CopilotEvents(event.get("agentId") or "", event["timestamp"])
    with open_text(path) as file:

        def has_hook() -> bool:
            conversation.add(file)
            return conversation.has_hook

        _waited(has_hook, PATIENCE)
    return conversation


def _waited(is_there: Callable[[], bool], seconds: float) -> bool:
    """Return True as soon as it is there, or False if it is not there after `seconds`."""
    until = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True


def _answer(event: Event, session: Session, conversation: CopilotEvents, call_id: str | None) -> Reply | None:
    from dataclasses import replace

    from readcache.core.model.tool_call import AskedCommand, ToolCall
    from readcache.hosts.tool_results import answer_tool, with_numbers
    from readcache.transcripts.copilot import exit_code, is_too_large, without_exit

    name, given, text = event["toolName"], event["toolArgs"], event["toolResult"]["textResultForLlm"]
    given = given if isinstance(given, dict) else {"input": str(given)}
    cwd = event.get("cwd") or event.get("workingDirectory")
    call = ToolCall(call_id, name, given, text, conversation.batch, cwd=cwd, complete=not is_too_large(text))
    if name == "bash":
        code = exit_code(text)
        call = replace(call, exit_code=code, complete=call.complete and code is not None, frame=without_exit)
        call = replace(call, asked=AskedCommand(given["command"]))
    if conversation.is_compacting:
        if call.asked is not None:
            session.answer(replace(call, output=""))  # record only what the command wrote
        return None
    if call.asked is not None:
        return session.answer(with_numbers(call, without_exit(text)[1], session), commit=False)
    is_listing = name == "view" and os.path.isdir(str(given.get("path")))
    return answer_tool(session, call, "other" if is_listing or not call.complete else None)


def _changes(target: InstallTarget) -> Sequence[Entry]:
    user = target.environment.get("COPILOT_HOME") or os.path.join(target.home, ".copilot")
    place = user if target.is_user else os.path.join(target.root, ".github")
    hook = {"type": "command", "bash": target.line("hook", "copilot"), "timeoutSec": HOOK_SECONDS}
    return [Entry(os.path.join(place, "hooks", "readcache.json"), ("hooks", "postToolUse", "+"), hook)]


def trial_calls(directory: str) -> list[dict[str, Any]]:
    """Return the events of two reads of one file. The hook must shorten the second."""
    from readcache.hosts.checks import TEXT, two_reads

    given = {"path": os.path.join(directory, "file")}

    def asked(name: str) -> list[Json]:
        request = {"toolCallId": name, "name": "view", "arguments": given}
        message = {"type": "assistant.message", "data": {"messageId": name, "toolRequests": [request]}}
        hook = {"hookType": "postToolUse", "input": {"timestamp": name}}
        return [message, {"type": "hook.start", "data": hook}]

    def shown(name: str) -> list[Json]:
        return [{"type": "tool.execution_complete", "data": {"toolCallId": name, "result": {"content": TEXT}}}]

    event = {"sessionId": "trial", "toolName": "view", "toolArgs": given, "toolResult": {"textResultForLlm": TEXT}}
    events = two_reads(directory, event, asked, shown)
    return [{**each, "transcriptPath": each["transcript_path"], "timestamp": each["tool_use_id"]} for each in events]


SCRIPTED = Scripted(
    ("copilot", "-p", "go on", "--allow-all-tools"),
    lambda url: {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_MODEL": "gpt-5", "COPILOT_OFFLINE": "true"},
    lambda _: {},
    '"tool_call_id"',
    chat_answer,
)


HOST = Host(
    "copilot",
    "on",
    "its session file tells what the model still sees",
    _changes,
    copilot_hook,
    trial=trial_calls,
    todo=lambda _: "restart Copilot; hooks of a project run only in a folder that you trust",
    scripted=SCRIPTED,
)
