"""The OpenAI Agents SDK: a `call_model_input_filter`.

    config = RunConfig(call_model_input_filter=ReadcacheFilter("/repo"))
    await Runner.run(agent, "fix it", run_config=config)

The SDK keeps every result as the tool gave it, and sends the whole list to the model each time. The filter judges the
results that are new in that list, and puts the same markers into the older ones again. So the list itself tells what
its reader sees, and one filter may serve all runs, agents and sub-agents.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from readcache import Mode, Policy, Session, Sessions
from readcache.hosts.adapter_settings import policy_by_settings
from readcache.hosts.fallback import fallback
from readcache.hosts.openai_agents.items import ToolItem, as_function, text_of, tool_items, with_item_text
from readcache.hosts.tool_results import Judge, answer_tool
from readcache.messages.messages import visible_to_model
from readcache.process.mode import acts, mode_named

_MOST = 256  # lists at once; the next request of one that was dropped is judged anew from its beginning

Items = list[Mapping[str, Any]]


class ReadcacheFilter:
    """`root`: the directory that relative paths are of. `store`: as for `Session`. `policy`: None for the preset that
    READCACHE_POLICY names. `first`: a filter of your own, which comes first, as `ToolOutputTrimmer()`. `tools`: by
    name, "bash", "read", "write", "other", "ignore" or a function, where names and arguments do not tell what a tool
    is."""

    def __init__(
        self,
        root: str = ".",
        *,
        store: str | None = None,
        policy: Policy | None = None,
        first: Callable[[Any], Any] | None = None,
        tools: Mapping[str, str | Judge] | None = None,
    ) -> None:
        policy = policy or policy_by_settings({})
        self._sessions = Sessions(root, store=store, policy=policy, host="openai-agents")
        self._first, self._tools = first, dict(tools or {})
        self._readers: list[AgentList] = []  # the newest is last
        self._lock = threading.Lock()

    async def __call__(self, data: Any) -> Any:
        """What the model is to be sent. See `RunConfig.call_model_input_filter`."""
        sent = data.model_data if self._first is None else self._first(data)
        sent = await sent if inspect.isawaitable(sent) else sent
        if self._is_off() or _may_drop_items(data.agent):
            return sent
        # The list has every result as the tool gave it.
        return fallback(lambda: dataclasses.replace(sent, input=self._judged(list(sent.input))), sent)

    def close(self) -> None:
        """Ends all conversations, and gives the store free."""
        self._sessions.close_all()

    def _is_off(self) -> bool:
        return self._sessions.policy.mode is Mode.OFF or not acts(mode_named(os.environ))

    def _judged(self, items: Items) -> Items:
        results = tool_items(visible_to_model(items))
        with self._lock:
            return self._reader(results).judged(items, results, self._tools) if results else items

    def _reader(self, results: Sequence[ToolItem]) -> AgentList:
        """The reader of a list that continues from the last judged result. Any other list is read from its beginning:
        its conversation is new, went back, or was forked."""
        ids = [found.result.call_id for found in results]
        found = next((reader for reader in reversed(self._readers) if reader.goes_on_in(ids)), None)
        if found is not None:
            self._readers.remove(found)
        elif len(self._readers) == _MOST:
            self._sessions.close(self._readers.pop(0).session.session_id)
        self._readers.append(found or AgentList(self._sessions.get(f"agents-{os.urandom(8).hex()}")))
        return self._readers[-1]


def _may_drop_items(agent: Any) -> bool:
    """True if the server truncates a list that does not fit."""
    return getattr(getattr(agent, "model_settings", None), "truncation", None) == "auto"


class AgentList:
    """One list that grows from request to request, and the texts shown for its results."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._texts: dict[str, tuple[str, str]] = {}  # call id -> (as the tool gave it, as the model is shown it)
        self._last = ""

    def goes_on_in(self, ids: Sequence[str]) -> bool:
        """True if the newest of these calls that are known is the one that was judged last."""
        return self._last == next((call_id for call_id in reversed(ids) if call_id in self._texts), None)

    def judged(self, items: Items, results: Sequence[ToolItem], tools: Mapping[str, str | Judge]) -> Items:
        """The items with markers in the results: older markers made true again, new results judged now."""
        items = list(items)
        for at, result in results:
            given, shown = self._texts.get(result.call_id, ("", ""))
            if given == result.output and shown != given:
                items[at] = with_item_text(items[at], shown)
        self._mend(items, results)
        for at, result in results:
            if result.call_id not in self._texts:
                reply = answer_tool(self.session, result, tools.get(result.name))
                shown = result.output if reply is None else reply.text
                self._texts[result.call_id], self._last = (result.output, shown), result.call_id
                items[at] = items[at] if shown == result.output else with_item_text(items[at], shown)
        return items

    def _mend(self, items: Items, results: Sequence[ToolItem]) -> None:
        """`Session.mend`. What it writes is remembered."""
        plain = [as_function(item) for item in items]
        mended = self.session.mend(plain)
        for at, result in results:
            if mended[at] is not plain[at] and (text := text_of(mended[at])) is not None:
                items[at] = with_item_text(items[at], text)
                self._texts[result.call_id] = result.output, text
