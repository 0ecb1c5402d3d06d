"""Strands Agents: a plugin, the last of the list.

agent = Agent(..., plugins=[..., ReadcacheAgentPlugin("/repo")])
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from strands.middleware import InvokeModelStage
from strands.plugins import Plugin

from readcache.hosts.adapter_settings import fallback
from readcache.hosts.judged_lists import JudgedLists
from readcache.hosts.tool_results import Judge


class ReadcacheAgentPlugin(Plugin):  # type: ignore[misc]  # no types where these are checked
    """`root`: the directory that relative paths are of. `tools`: by name, "bash", "read", "write", "other", "ignore" or
    a function, where names and arguments do not tell what a tool is. `settings`: of `adapter_settings`, as `store`,
    `policy`, `restore`, `clear` and `on_reply`. Agents may share it. UsageError for what means nothing."""

    name = "readcache"

    def __init__(self, root: str = ".", *, tools: Mapping[str, str | Judge] | None = None, **settings: Any) -> None:
        super().__init__()
        self._lists = JudgedLists("strands", tools, {"root": root, **settings})

    def init_agent(self, agent: Any) -> None:
        """See `Plugin`."""
        agent.add_middleware(InvokeModelStage, self._sent)

    async def _sent(self, context: Any, ask: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Puts markers into the messages that the model is sent. The agent's own stay as they are."""

        def judged() -> Any:
            return context.replace(messages=self._lists.messages(context.messages, f"{id(context.agent)}"))

        async for event in ask(await asyncio.to_thread(fallback, judged, context)):
            yield event

    def stats(self) -> dict[str, int]:
        """The counters of `Session.stats`, summed over all agents."""
        return self._lists.stats()

    def close(self) -> None:
        """Ends all conversations, and releases the store."""
        self._lists.close()
