"""Codex CLI: a hook after each command of its shell tool, which may replace the result's text.

The command itself is not changed, because approvals and rules must see the user's own command. Inside the sandbox of
Codex, readcache could not write its log either.

The session's file (the "rollout") shows what the model can still see, and each hook reads it first. It contains the
texts that were sent for earlier replies, truncated results, compactions, rollbacks and resumed sessions. It also has
the command's exit status.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from readcache.hosts.host import Entry, Host, InstallTarget, Json, Scripted, hook_entry, stream
from readcache.hosts.plain_file import open_text

if TYPE_CHECKING:
    from readcache import Session, Sessions


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
    given, code = event["tool_input"], rollout.exit_code
    asked = AskedCommand(given["command"])
    call = ToolCall(call_id, "Bash", given, "", rollout.batch, exit_code=code, cwd=event["cwd"], asked=asked)
    if rollout.has_answer or code is None:
        session.answer(call)  # record only its writes: its output is shown in parts, or as an error
        return None
    reply = session.answer(replace(call, output=output, complete=not is_truncated(output)), commit=False)
    if reply.is_output:
        return None
    shown = f"Process exited with code {reply.exit_code}\nOutput:\n{reply.text}"
    return {"decision": "block", "reason": shown}  # blocks nothing: the model gets this result


def _session(event: Mapping[str, Any], sessions: Sessions) -> Session:
    """Return the session of the event's reader: a sub-agent has a conversation of its own."""
    session = sessions.get(event["session_id"], event.get("agent_id") or "main")
    session.use_model(str(event.get("model") or ""))
    return session


def _hooks_file(target: InstallTarget) -> str:
    home = target.environment.get("CODEX_HOME") or os.path.join(target.home, ".codex")
    return os.path.join(home if target.is_user else os.path.join(target.root, ".codex"), "hooks.json")


def _changes(target: InstallTarget) -> Sequence[Entry]:
    events = {"PostToolUse": "^Bash$", "SessionStart": "compact"}
    return [hook_entry(target, "codex", _hooks_file(target), event, matcher) for event, matcher in events.items()]


# ---------------------------------------------------------------- doctor


def codex_runs(path: str, command: str, root: str) -> str:
    """Return a sentence that says Codex runs the hook. Raise ReadcacheError if it does not.

    `path`: the file with the hook. `command`: the hook's command. `root`: the project's directory. Codex itself is
    asked, because only it knows which hooks are trusted and enabled.
    """
    import shutil

    from readcache import ReadcacheError

    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "readcache", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [root]}},
    ]
    program = shutil.which("codex")
    if program is None:
        raise ReadcacheError("cannot check whether codex accepts the hook: codex is not on PATH")
    answer = _ask(program, asked, root)
    ours = [
        hook
        for entry in answer["data"]
        for hook in entry["hooks"]
        if hook["sourcePath"] == path and hook["command"] == command
    ]
    if not ours:
        raise ReadcacheError(f"codex does not load {path}: trust the project, or set features.hooks in config.toml")
    if not all(hook["enabled"] and hook["trustStatus"] in ("trusted", "managed") for hook in ours):
        raise ReadcacheError("codex does not run the hooks until you trust them: start codex and run /hooks")
    return "codex runs the hooks"


def _ask(program: str, asked: Sequence[Mapping[str, Any]], root: str) -> Any:
    """Start the server of Codex, and return the result of the last request."""
    import subprocess

    with subprocess.Popen([program, "app-server"], cwd=root, stdin=-1, stdout=-1, stderr=-3, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(request) + "\n" for request in asked))
        server.stdin.flush()
        for line in server.stdout:
            if (message := json.loads(line)).get("id") == asked[-1]["id"]:
                server.stdin.close()
                return message["result"]
    return {"data": []}


def trial_events(directory: str) -> list[dict[str, Any]]:
    """Return the events of two reads of one file. The hook must shorten the second."""
    from readcache.hosts.checks import TEXT, two_reads

    def asked(name: str) -> list[dict[str, Any]]:
        call = {"type": "function_call", "name": "exec_command", "call_id": name}
        item = {"type": "CommandExecution", "id": name, "exit_code": 0}
        return [
            {"type": "response_item", "payload": call | {"arguments": json.dumps({"cmd": "cat file"})}},
            {"type": "event_msg", "payload": {"type": "item_completed", "item": item}},
        ]

    def shown(name: str) -> list[dict[str, Any]]:
        output = f"Process exited with code 0\nOutput:\n{TEXT}"
        result = {"type": "function_call_output", "call_id": name, "output": output}
        return [{"type": "response_item", "payload": result}]

    event = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "cat file"}}
    return two_reads(directory, event, asked, shown)


_CONFIG = """model = "gpt-5-codex"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{}/v1"
wire_api = "responses"
"""


def _answer(_: str, number: int, command: str) -> str:
    item: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
    if command:
        arguments = json.dumps({"cmd": command})
        item = {"type": "function_call", "name": "exec_command", "call_id": f"call_{number}", "arguments": arguments}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    done = {"id": "r", "output": [item], "usage": usage | details}
    return stream(
        [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
    )


SCRIPTED = Scripted(
    # Codex cannot set up its sandbox everywhere, and it runs only the `cat` of this test. `in_force` checks trust.
    (
        *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
        *("--sandbox", "danger-full-access", "go on"),
    ),
    lambda _: {},
    lambda url: {".codex/config.toml": _CONFIG.format(url)},
    '"function_call_output"',
    _answer,
)


HOST = Host(
    "codex",
    "on",
    "its session file tells what the model still sees",
    _changes,
    _hook,
    in_force=lambda target: codex_runs(_hooks_file(target), target.line("hook", "codex"), target.root),
    trial=trial_events,
    todo=lambda _: "restart Codex, type /hooks and trust the readcache hooks; Codex does not run them until you do",
    scripted=SCRIPTED,
)
