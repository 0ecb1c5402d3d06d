"""claude-agent-sdk: Claude Code's hooks, answered inside your own program.

    sessions = sessions_by_settings("/repo")
    options = ClaudeAgentOptions(cwd="/repo", hooks=hooks(sessions))

The program that the package starts is Claude Code, so that all else is as in `claude_code`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from readcache import Budget, Policy, Reply, Sessions
from readcache.hosts.adapter_settings import adapter_settings
from readcache.hosts.claude_code.adapter import claude_hook
from readcache.hosts.claude_code.settings import MATCHERS

if TYPE_CHECKING:
    from claude_agent_sdk import HookMatcher
    from claude_agent_sdk.types import HookEvent


def sessions_by_settings(
    root: str = ".", *, store: str | None = None, policy: Policy | str | None = None, restore: Budget | bool = True
) -> Sessions:
    """What `hooks` takes. `store`: as for `Session`; None for what READCACHE_STORE says, else in memory. `policy`: or
    the name of a preset; None for what READCACHE and READCACHE_POLICY say. `restore`: of what was read, what is put
    back after a compaction. UsageError for what means nothing."""
    settings = adapter_settings({"root": root, "store": store, "policy": policy, "restore": restore})
    return settings.sessions("claude-agent-sdk")


def hooks(
    sessions: Sessions,
    more: Mapping[Any, list[Any]] | None = None,
    *,
    on_reply: Callable[[Reply], object] | None = None,
) -> dict[HookEvent, list[HookMatcher]]:
    """For `ClaudeAgentOptions(hooks=...)`. `sessions`: of any number of clients. `more`: hooks of your own, which are
    called as without us. `on_reply` is called with each Reply. UsageError if it is not a function."""
    from claude_agent_sdk import HookMatcher

    sessions.host, settings = "claude-agent-sdk", adapter_settings({"on_reply": on_reply}, {})

    async def answer(event: Any, _: str | None, __: Any) -> Any:
        try:
            return await asyncio.to_thread(claude_hook, event, sessions, settings.told) or {}
        except Exception:  # the result stays as it is
            return {}

    ours = {event: [HookMatcher(matcher=matcher, hooks=[answer])] for event, matcher in MATCHERS.items()}
    given = more or {}
    return {event: [*given.get(event, ()), *ours.get(event, ())] for event in {**ours, **given}}
