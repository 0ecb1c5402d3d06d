"""claude-agent-sdk: Claude Code's hooks, answered inside your own program.

    sessions = sessions_by_settings("/repo")
    options = ClaudeAgentOptions(cwd="/repo", hooks=hooks(sessions))

The package starts Claude Code, so everything else is as in `claude_code`.
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
    """Return the sessions that `hooks` needs. Raise UsageError for an invalid value.

    `store`: as for `Session`; None for READCACHE_STORE, or memory if that is not set. `policy`: a Policy, or the name
    of a preset; None for READCACHE and READCACHE_POLICY. `restore`: how much to restore after a compaction.
    """
    settings = adapter_settings({"root": root, "store": store, "policy": policy, "restore": restore})
    return settings.sessions("claude-agent-sdk")


def hooks(
    sessions: Sessions,
    more: Mapping[Any, list[Any]] | None = None,
    *,
    on_reply: Callable[[Reply], object] | None = None,
) -> dict[HookEvent, list[HookMatcher]]:
    """Return the hooks for `ClaudeAgentOptions(hooks=...)`.

    `sessions`: may serve any number of clients. `more`: your own hooks, which are called as before. `on_reply`: called
    with each Reply. Raise UsageError if it is not a function.
    """
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
