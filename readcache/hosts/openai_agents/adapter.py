"""The OpenAI Agents SDK: a `call_model_input_filter`.

    config = RunConfig(call_model_input_filter=ReadcacheFilter("/repo"))
    await Runner.run(agent, "fix it", run_config=config)

The SDK keeps every result as the tool gave it, and sends the whole list to the model each time. The filter judges the
new results in the list, and puts the same markers into the older ones again. So the list itself shows what its reader
sees, and one filter may serve all runs, agents and sub-agents.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from readcache import Budget, Marks, Policy, Reply
from readcache.hosts.adapter_settings import fallback
from readcache.hosts.judged_lists import JudgedLists
from readcache.hosts.openai_agents.items import Item, message_of_item, with_details, with_item_text
from readcache.hosts.tool_results import Judge

Named = str | Callable[[Any], str | None] | None


class ReadcacheFilter:
    """A filter that omits visible lines from the model's input. Raise UsageError for an invalid value.

    `root`: the directory that relative paths start from. `store`: as for `Session`; None for READCACHE_STORE, or memory
    if that is not set. `policy`: a Policy, or the name of a preset; None for the one that READCACHE_POLICY names.
    `first`: a filter of your own that runs before this one, such as `ToolOutputTrimmer()`. `on_reply`: called with each
    Reply.

    `tools`: the kinds of tools, by name: "bash", "read", "write", "other", "ignore" or a function. Only needed for
    tools whose names and arguments do not show their kind.

    `session`: the conversation's name, or a function that returns it for a `CallModelData`. With a name, the
    conversation is recognised after a compaction that left none of its results.

    `restore`: how much to restore after a compaction: a Budget, True for the default one, or False for nothing.
    `clear`: when to clear old results: Marks, True for the default ones, None for READCACHE_CLEAR.
    """

    def __init__(
        self,
        root: str = ".",
        *,
        store: str | None = None,
        policy: Policy | str | None = None,
        first: Callable[[Any], Any] | None = None,
        tools: Mapping[str, str | Judge] | None = None,
        session: Named = None,
        restore: Budget | bool = True,
        clear: Marks | tuple[int, int] | bool | None = None,
        on_reply: Callable[[Reply], object] | None = None,
    ) -> None:
        given: dict[str, Any] = {"root": root, "store": store, "policy": policy, "restore": restore}
        given |= {"clear": clear, "on_reply": on_reply}
        self._lists = JudgedLists("openai-agents", tools, given, with_details)
        self._first, self._named = first, session

    async def __call__(self, data: Any) -> Any:
        """Return the input that the model will be sent. See `RunConfig.call_model_input_filter`."""
        sent = data.model_data if self._first is None else self._first(data)
        sent = await sent if inspect.isawaitable(sent) else sent
        if _may_drop_items(data.agent):
            return sent

        def judged() -> Any:
            name = self._named(data) if callable(self._named) else self._named
            return dataclasses.replace(sent, input=self._judged(list(sent.input), str(name or "")))

        return await asyncio.to_thread(fallback, judged, sent)  # `sent` has every result as the tool gave it

    def stats(self) -> dict[str, int]:
        """Return the counters of `Session.stats`, summed over all lists."""
        return self._lists.stats()

    def close(self) -> None:
        """End all conversations, and release the store."""
        self._lists.close()

    def _judged(self, items: list[Item], name: str) -> list[Item]:
        messages, out = [message_of_item(item) for item in items], list[Item]()
        texts, sections = self._lists.judged(messages, name, log=name)
        for at, item in enumerate(items):
            out.append(with_item_text(messages[at].raw, texts[at, 0]) if (at, 0) in texts else item)
            if at in sections:
                out.append({"role": "user", "content": sections[at]})
        return out


def _may_drop_items(agent: Any) -> bool:
    """Return True if the server truncates a list that does not fit into its window."""
    return getattr(getattr(agent, "model_settings", None), "truncation", None) == "auto"
