"""Codex CLI: a hook after each command of its shell tool, which may put another text in the place of the result.

The command itself is left alone: approvals and rules see the user's own words, and inside Codex' sandbox nothing of
ours could write its log. What the model still sees stands in the session's file (the "rollout"), which each hook reads
first: results that were cut, a compaction, a rollback, a resumed session. The exit status stands there too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from readcache.hosts.host import Entry, Host, Where

if TYPE_CHECKING:
    from readcache import Sessions

_TRUNCATED = "Warning: truncated output ("  # what the result begins with where Codex left out its middle
_MATTERS = ('"response_item"', '"compacted"', '"CommandExecution"', '"FileChange"', '"thread_rolled_back"')


class _Rollout:
    """What the session's file tells about the call `call_id`."""

    def __init__(self, path: str, call_id: str) -> None:
        self.messages: list[dict[str, Any]] = []  # as the model will be sent them
        self.exit_code: int | None = None  # of the call; None: it is not known
        self.written: list[tuple[str, str]] = []  # (path, call) of patches since the last command before this one
        self.has_answer = False  # a part of the output was shown already, and the command went on in the background
        self.batch = ""  # the first of the calls that the model made at once
        group = ""
        for kind, payload in _entries(path):
            if kind == "compacted":
                self.messages = list(payload.get("replacement_history") or ())
            elif kind == "response_item":
                self.messages.append(payload)
                is_call = payload.get("type") in ("function_call", "custom_tool_call")
                group = (group or payload.get("call_id", "")) if is_call else ""
                if payload.get("call_id") == call_id:
                    self.batch, self.has_answer = group or self.batch, not is_call
            elif payload.get("type") == "thread_rolled_back":
                self.messages = []  # how far is not told in a way to rely on; what is shown from now on counts
            elif payload.get("type") == "item_completed":
                self._add_item(payload["item"], call_id)

    def _add_item(self, item: Mapping[str, Any], call_id: str) -> None:
        if item.get("type") == "FileChange":
            self.written += [(path, str(item.get("id"))) for path in item.get("changes", ())]
        elif item.get("type") == "CommandExecution" and item.get("id") == call_id:
            self.exit_code = item.get("exit_code")
        elif item.get("type") == "CommandExecution":
            self.written = []


def _entries(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(type, payload) of the lines that matter here."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if any(word in line for word in _MATTERS):
                entry = json.loads(line)
                yield entry["type"], entry["payload"]


def _hook(event: Mapping[str, Any], sessions: Sessions) -> Mapping[str, Any] | None:
    if event.get("hook_event_name") != "PostToolUse" or event.get("tool_name") != "Bash":
        return None
    call_id, output = event["tool_use_id"], event["tool_response"]
    if not event.get("transcript_path") or not isinstance(output, str):
        return None  # a session that is not kept: nobody can tell what the model still sees
    rollout = _Rollout(event["transcript_path"], call_id)
    session = sessions.get(event["session_id"], event.get("agent_id") or "main")
    session.sync(rollout.messages)
    for path, patch in rollout.written:
        session.wrote(path, call_id=patch)
    known = {"exit_code": rollout.exit_code, "cwd": event["cwd"], "call_id": call_id, "batch": rollout.batch}
    command = event["tool_input"]["command"]
    if rollout.has_answer or rollout.exit_code is None:
        session.observe(command, "", **known)  # what it wrote; what it printed is shown in parts, or as an error
        return None
    reply = session.observe(command, output, complete=not output.startswith(_TRUNCATED), **known)
    if reply.outcome.value == "full":
        return None
    shown = f"Process exited with code {rollout.exit_code}\nOutput:\n{reply.text}"
    return {"decision": "block", "reason": shown}  # which does not block: it is what the model gets as the result


def _folder(where: Where) -> str:
    """The directory of the settings."""
    if where.is_user:
        return where.environment.get("CODEX_HOME") or os.path.join(where.home, ".codex")
    return os.path.join(where.root, ".codex")


def _changes(where: Where) -> Sequence[Entry]:
    hook = {"type": "command", "command": where.line("hook", "codex"), "timeout": 30}
    path = os.path.join(_folder(where), "hooks.json")
    return [Entry(path, ("hooks", "PostToolUse", "+"), {"matcher": "^Bash$", "hooks": [hook]})]


def _in_force(where: Where) -> str:
    """Asks Codex itself, which also knows what is trusted and what is switched off."""
    from readcache import ReadcacheError

    path = os.path.join(_folder(where), "hooks.json")
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "readcache", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [where.root]}},
    ]
    program = shutil.which("codex")
    if program is None:
        raise ReadcacheError("codex is not on PATH, so that nobody can say whether it takes the hook: install it")
    answer = _ask(program, asked, where.root)
    found = [hook for place in answer["data"] for hook in place["hooks"] if hook["sourcePath"] == path]
    ours = [hook for hook in found if hook["command"] == where.line("hook", "codex")]
    if not ours:
        raise ReadcacheError(f"codex does not take {path}: trust the project, or set features.hooks in config.toml")
    if not ours[0]["enabled"] or ours[0]["trustStatus"] not in ("trusted", "managed"):
        raise ReadcacheError("codex does not run the hook until you trust it: start codex and say /hooks")
    return "codex runs the hook"


def _ask(program: str, asked: Sequence[Mapping[str, Any]], root: str) -> Any:
    """The result of the last request to Codex' server, which is started for it."""
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


HOST = Host("codex", "on", "its session file tells what the model still sees", _changes, _hook, in_force=_in_force)
