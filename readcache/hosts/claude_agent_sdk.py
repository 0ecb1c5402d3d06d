"""claude-agent-sdk: Claude Code's hooks, answered inside your own program.

    sessions = Sessions("/repo")
    options = ClaudeAgentOptions(cwd="/repo", hooks=hooks(sessions))

The program that the package starts is Claude Code, so that all else is as in `claude_code`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from readcache import Sessions
from readcache.hosts.claude_code.adapter import claude_hook
from readcache.hosts.claude_code.settings import MATCHERS

if TYPE_CHECKING:
    from claude_agent_sdk import HookMatcher
    from claude_agent_sdk.types import HookEvent


def hooks(sessions: Sessions, more: Mapping[Any, list[Any]] | None = None) -> dict[HookEvent, list[HookMatcher]]:
    """For `ClaudeAgentOptions(hooks=...)`. `sessions`: of any number of clients. `more`: hooks of your own, which are
    called as without us."""
    from claude_agent_sdk import HookMatcher

    sessions.host = "claude-agent-sdk"

    async def answer(event: Any, _: str | None, __: Any) -> Any:
        try:
            return await asyncio.to_thread(claude_hook, event, sessions) or {}
        except Exception:  # the result stays as it is
            return {}

    ours = {event: [HookMatcher(matcher=matcher, hooks=[answer])] for event, matcher in MATCHERS.items()}
    given = more or {}
    return {event: [*given.get(event, ()), *ours.get(event, ())] for event in {**ours, **given}}
