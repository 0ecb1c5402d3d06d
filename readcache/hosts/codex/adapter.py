"""Codex CLI: a hook after each command of its shell tool, which may replace the result's text.

The command itself is not changed, because approvals and rules must see the user's own command. Inside the sandbox of
Codex, readcache could not write its log either.

The session's file (the "rollout") shows what the model can still see, and each hook reads it first. It contains the
texts that were sent for earlier replies, truncated results, compactions, rollbacks and resumed sessions. It also has
the command's exit status.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from readcache.hosts.codex.check import codex_runs, trial_events
from readcache.hosts.host import Entry, Host, InstallTarget, hook_entry
from readcache.hosts.plain_file import open_text

if TYPE_CHECKING:
    from readcache import Session, Sessions
    from readcache.hosts.scripted import Scripted


def _hook(event: Mapping[str, Any], sessions: Sessions) -> Mapping[str, Any] | None:
    if event.get("hook_event_name") == "SessionStart" and event.get("source") == "compact":
        from readcache.hosts.restored import answer_compaction

        return answer_compaction(_session(event, sessions))
    if event.get("hook_event_name") != "PostToolUse" or event.get("tool_name") != "Bash":
        return None
    call_id, output = event["tool_use_id"], event["tool_response"]
    if not event.get("transcript_path") or not isinstance(output, str):
        return None  # a session without a file: nothing shows what the model can still see
    from dataclasses import replace

    from readcache.core.model.tool_call import AskedCommand, ToolCall
    from readcache.transcripts.codex import Rollout, is_truncated

    with open_text(event["transcript_path"]) as file:
        rollout = Rollout(file, call_id)
    session = _session(event, sessions)
    session.sync(rollout.messages, batch=rollout.batch)  # parallel calls have hooks of their own
    for path, patch in rollout.written:
        session.wrote(path, call_id=patch)
    call = ToolCall(
        call_id,
        "Bash",
        event["tool_input"],
        "",
        rollout.batch,
        exit_code=rollout.exit_code,
        cwd=event["cwd"],
        asked=AskedCommand(event["tool_input"]["command"]),
    )
    if rollout.has_answer or rollout.exit_code is None:
        session.answer(call)  # record only its writes: its output is shown in parts, or as an error
        return None
    reply = session.answer(replace(call, output=output, complete=not is_truncated(output)), commit=False)
    if reply.outcome.value == "full":
        return None
    shown = f"Process exited with code {rollout.exit_code}\nOutput:\n{reply.text}"
    return {"decision": "block", "reason": shown}  # blocks nothing: the model gets this result


def _session(event: Mapping[str, Any], sessions: Sessions) -> Session:
    """Return the session of the event's reader: a sub-agent has a conversation of its own."""
    return sessions.get(event["session_id"], event.get("agent_id") or "main")


def _hooks_file(target: InstallTarget) -> str:
    home = target.environment.get("CODEX_HOME") or os.path.join(target.home, ".codex")
    return os.path.join(home if target.is_user else os.path.join(target.root, ".codex"), "hooks.json")


def _changes(target: InstallTarget) -> Sequence[Entry]:
    events = {"PostToolUse": "^Bash$", "SessionStart": "compact"}
    return [hook_entry(target, "codex", _hooks_file(target), event, matcher) for event, matcher in events.items()]


def _scripted() -> Scripted:
    from readcache.hosts.codex.scripted import SCRIPTED

    return SCRIPTED


HOST = Host(
    "codex",
    "on",
    "its session file tells what the model still sees",
    _changes,
    _hook,
    in_force=lambda target: codex_runs(_hooks_file(target), target.line("hook", "codex"), target.root),
    trial=trial_events,
    todo=lambda _: "start Codex anew, type /hooks in it, and trust ours: until then it runs none of them",
    scripted=_scripted,
)
