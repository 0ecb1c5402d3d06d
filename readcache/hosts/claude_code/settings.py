"""What switches readcache on in Claude Code's settings, and whether that is in force."""

from __future__ import annotations

import os
from collections.abc import Sequence

from readcache.hosts.host import Entry, Where, hook_entry

# Event -> the tools, or the source, that trigger it.
MATCHERS = {
    "PostToolUse": "Bash|Edit|Grep|MultiEdit|NotebookEdit|Read|Write|mcp__.*",
    "PostToolUseFailure": "Bash",
    "SessionStart": "compact",
}


def changes(where: Where) -> Sequence[Entry]:
    """What `readcache init claude-code` puts where."""
    settings = os.path.join(_place(where), ".claude", "settings.json")
    return [hook_entry(where, "claude-code", settings, event, matcher) for event, matcher in MATCHERS.items()]


def former_files(where: Where) -> Sequence[str]:
    """Where the version before this one put the MCP server that its hooks called."""
    return [os.path.join(_place(where), ".claude.json" if where.is_user else ".mcp.json")]


def _place(where: Where) -> str:
    return where.home if where.is_user else where.root


def in_force(where: Where) -> str:
    """What `doctor` says. ReadcacheError where no hook would run."""
    from readcache import ReadcacheError
    from readcache.hosts.settings_files.json_text import settings_in

    for place in (where.home, where.root):
        for name in ("settings.json", "settings.local.json"):
            file = os.path.join(place, ".claude", name)
            if settings_in(file).get("disableAllHooks"):
                raise ReadcacheError(f"no hook runs: remove disableAllHooks from {file}")
    return "Claude Code runs the hooks"
