"""Strands Agents: a plugin.

    agent = Agent(..., plugins=[..., ReadcacheAgentPlugin("/repo")])

Put it last in the list.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from strands.middleware import InvokeModelStage
from strands.plugins import Plugin

from readcache.hosts.adapter_settings import fallback
from readcache.hosts.judged_lists import ListAdapter


class ReadcacheAgentPlugin(ListAdapter, Plugin):  # type: ignore[misc]  # no types where these are checked
    """A plugin that omits visible lines from requests. Agents may share it. Raise UsageError for an invalid value.

    `root`: the directory that relative paths start from. `tools`: the kinds of tools, by name: "bash", "read", "write",
    "other", "ignore" or a function. Only needed for tools whose names and arguments do not show their kind. `settings`:
    as for `adapter_settings`, e.g. `store`, `policy`, `restore`, `clear` and `on_reply`.
    """

    name, host = "readcache", "strands"

    def init_agent(self, agent: Any) -> None:
        """Add the middleware to an agent. See `Plugin`."""
        agent.add_middleware(InvokeModelStage, self._sent)

    async def _sent(self, context: Any, ask: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Put markers into the messages that the model is sent. The agent's own messages do not change."""
        name = f"{id(context.agent)}"

        def judged() -> Any:
            model = context.model.get_config().get("model_id")
            return context.replace(messages=self._lists.messages(context.messages, name, model=model))

        async for event in ask(await asyncio.to_thread(fallback, judged, context)):
            if "stop" in event:  # the last event, see `ModelStopReason`
                await asyncio.to_thread(self._lists.answered, name, {"usage": event["stop"][2]})
            yield event
