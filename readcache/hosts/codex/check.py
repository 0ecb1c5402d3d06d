"""Ask Codex CLI if it runs the readcache hook, and make events to try the hook with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


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
