"""What switches readcache on in Claude Code's settings, and whether that is in force.

Where the package `mcp` is installed, the hooks call our MCP server, which Claude Code starts with each conversation:
that takes milliseconds. Else each hook is a process. The server's tools are hidden from the model, which has its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from readcache.hosts.host import HOOK_SECONDS, Entry, Where

# Event -> the tools, or the source, of which it is told.
MATCHERS = {
    "PostToolUse": "Bash|Edit|Grep|MultiEdit|NotebookEdit|Read|Write|mcp__.*",
    "PostToolUseFailure": "Bash",
    "PostToolBatch": "",
    "SessionStart": "compact",
}
_TOLD = (
    "hook_event_name",
    "session_id",
    "transcript_path",
    "cwd",
    "agent_id",
    "source",
    "tool_name",
    "tool_use_id",
    "tool_input",
    "tool_response",
    "tool_calls",
)
_SERVER = "readcache"


def changes(where: Where) -> Sequence[Entry]:
    """What `readcache init claude-code` puts where."""
    from importlib.util import find_spec

    place = where.home if where.is_user else where.root
    settings = os.path.join(place, ".claude", "settings.json")
    found = find_spec("mcp")
    has_server = found is not None and found.origin is not None  # a directory of that name is no package
    hook = {
        **(_call() if has_server else {"type": "command", "command": where.line("hook", "claude-code")}),
        "timeout": HOOK_SECONDS,
    }
    entries = [
        Entry(settings, ("hooks", event, "+"), {**({"matcher": matcher} if matcher else {}), "hooks": [hook]})
        for event, matcher in MATCHERS.items()
        if has_server or event != "PostToolBatch"  # a process costs more than it tells: the transcript has the same
    ]
    if not has_server:
        return entries
    words = [*where.program[1:], "mcp", "--hooks", *where.policy_words()]
    server = {"command": where.program[0], "args": words, "env": {"READCACHE": where.mode}}
    entries += [
        Entry(settings, ("permissions", "deny", "+"), f"mcp__{_SERVER}"),
        Entry(os.path.join(place, ".claude.json" if where.is_user else ".mcp.json"), ("mcpServers", _SERVER), server),
    ]
    return entries if where.is_user else [*entries, Entry(settings, ("enabledMcpjsonServers", "+"), _SERVER)]


def _call() -> dict[str, Any]:
    """A hook that calls the server. Of what is told, a part that an event has not got is empty."""
    told = {name: f"${{{name}}}" for name in _TOLD}
    return {"type": "mcp_tool", "server": _SERVER, "tool": "hook", "input": {"host": "claude-code", **told}}


def in_force(where: Where) -> str:
    """What `doctor` says. ReadcacheError where no hook would run, or what it starts is not there."""
    import shutil

    from readcache import ReadcacheError

    files = [
        os.path.join(place, ".claude", name)
        for place in (where.home, where.root)
        for name in ("settings.json", "settings.local.json")
    ]
    for file in files:
        if _settings(file).get("disableAllHooks"):
            raise ReadcacheError(f"no hook runs: remove disableAllHooks from {file}")
    if shutil.which(where.program[0]) is None:
        raise ReadcacheError(f"the hooks start {where.program[0]}, which is not there: run readcache init again")
    return "Claude Code runs the hooks"


def _settings(file: str) -> dict[str, Any]:
    try:
        with open(file, encoding="utf-8") as opened:
            found = json.load(opened)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
