"""What switches readcache on in Claude Code's settings, and whether that is in force."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from readcache.hosts.host import HOOK_SECONDS, Entry, Where

# Event -> the tools, or the source, that trigger it.
MATCHERS = {
    "PostToolUse": "Bash|Edit|Grep|MultiEdit|NotebookEdit|Read|Write|mcp__.*",
    "PostToolUseFailure": "Bash",
    "PostToolBatch": "",
    "SessionStart": "compact",
}


def changes(where: Where) -> Sequence[Entry]:
    """What `readcache init claude-code` puts where."""
    settings = os.path.join(_place(where), ".claude", "settings.json")
    hook = {"type": "command", "command": where.line("hook", "claude-code"), "timeout": HOOK_SECONDS}
    return [
        Entry(settings, ("hooks", event, "+"), {"matcher": matcher, "hooks": [hook]})
        for event, matcher in MATCHERS.items()
        if matcher  # a process for the others costs more than it tells: the transcript has the same
    ]


def former_files(where: Where) -> Sequence[str]:
    """Where the version before this one put the MCP server that its hooks called."""
    return [os.path.join(_place(where), ".claude.json" if where.is_user else ".mcp.json")]


def _place(where: Where) -> str:
    return where.home if where.is_user else where.root


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
