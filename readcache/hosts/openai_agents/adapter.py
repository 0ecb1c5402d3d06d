"""The OpenAI Agents SDK: a `call_model_input_filter`.

    config = RunConfig(call_model_input_filter=ReadcacheFilter("/repo"))
    await Runner.run(agent, "fix it", run_config=config)

The SDK keeps every result as the tool gave it, and sends the whole list to the model each time. The filter judges the
results that are new in that list, and puts the same markers into the older ones again. So the list itself tells what
its reader sees, and one filter may serve all runs, agents and sub-agents.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import inspect
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from readcache import Budget, Marks, Mode, Policy, Reply, Session
from readcache.context import mend_and_clear
from readcache.hosts.adapter_settings import AdapterSettings, adapter_settings
from readcache.hosts.fallback import fallback
from readcache.hosts.openai_agents.items import (
    Item,
    ToolItem,
    as_function,
    is_compaction,
    result_ids,
    said,
    text_of,
    tool_items,
    with_item_text,
)
from readcache.hosts.readers import Readers
from readcache.hosts.tool_results import Judge, answer_tool, tool_kinds
from readcache.messages.messages import visible_to_model
from readcache.process.mode import acts, mode_named

Items = list[Item]
Named = str | Callable[[Any], str | None] | None


class ReadcacheFilter:
    """`root`: the directory that relative paths are of. `store`: as for `Session`; None for what READCACHE_STORE says,
    else in memory. `policy`: or the name of a preset; None for the one that READCACHE_POLICY names. `first`: a filter
    of your own, which comes first, as `ToolOutputTrimmer()`. `tools`: by name, "bash", "read", "write", "other",
    "ignore" or a function, where names and arguments do not tell what a tool is. `session`: the conversation's name, or
    a function that gives it for a `CallModelData`: so it is known after a compaction that left none of its results.
    `restore`: of what was read, what is put back behind a compaction; a Budget, True for the default one, or False.
    `clear`: when old results are cleared; Marks, True for the default ones, None for what READCACHE_CLEAR says.
    `on_reply` is given each Reply. UsageError for what means nothing."""

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
        given = {"root": root, "store": store, "policy": policy, "restore": restore}
        self._settings = adapter_settings({**given, "clear": clear, "on_reply": on_reply})
        self._tools = tool_kinds(tools)
        self._first, self._named = first, session
        self._readers = Readers[AgentList]()

    async def __call__(self, data: Any) -> Any:
        """What the model is to be sent. See `RunConfig.call_model_input_filter`."""
        sent = data.model_data if self._first is None else self._first(data)
        sent = await sent if inspect.isawaitable(sent) else sent
        if self._is_off() or _may_drop_items(data.agent):
            return sent

        def judged() -> Any:
            name = self._named(data) if callable(self._named) else self._named
            return dataclasses.replace(sent, input=self._judged(list(sent.input), str(name or "")))

        return await asyncio.to_thread(fallback, judged, sent)  # the list has every result as the tool gave it

    def stats(self) -> dict[str, int]:
        """The counters of `Session.stats`, summed over all lists."""
        return self._readers.stats()

    def close(self) -> None:
        """Ends all conversations, and gives the store free."""
        self._readers.close()

    def _is_off(self) -> bool:
        return self._settings.policy.mode is Mode.OFF or not acts(mode_named(os.environ))

    def _judged(self, items: Items, name: str) -> Items:
        with self._readers.lock:
            reader = self._reader(items, name)
            return items if reader is None else reader.judged(items, self._tools)

    def _reader(self, items: Items, name: str) -> AgentList | None:
        """The reader of a list that goes on from the last judged result, or from a compaction of all of them. Any other
        list is read from its beginning: its conversation is new, went back, or was forked. None for one without
        results."""
        ids = result_ids(items)
        found = next((reader for reader in self._readers if reader.goes_on_in(ids, items, name)), None)
        if found is None and (ids or (name and any(map(is_compaction, items)))):
            begins = hashlib.sha256(f"{said(items[0])} {ids[:1]}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
            session = self._settings.new_reader(name or f"agents-{begins}", host="openai-agents")
            found = AgentList(session, name, self._settings)
        return None if found is None else self._readers.get(id(found), lambda: found)


def _may_drop_items(agent: Any) -> bool:
    """True if the server truncates a list that does not fit."""
    return getattr(getattr(agent, "model_settings", None), "truncation", None) == "auto"


class AgentList:
    """One list that grows from request to request, and the texts shown for its results. `name`: of its conversation, ""
    if the user gave none."""

    def __init__(self, session: Session, name: str, settings: AdapterSettings) -> None:
        self._session, self._name, self._settings = session, name, settings
        self.stats, self.close = session.stats, session.close
        self._texts: dict[str, tuple[str, str]] = {}  # call id -> (as the tool gave it, as the model is shown it)
        self._last = ""
        self._items: Items = []  # the last list
        self._sections: list[tuple[Item, str]] = []  # what a compaction left, and the section behind it

    def goes_on_in(self, ids: Sequence[str], items: Items, name: str) -> bool:
        """True if the newest of these calls that are known is the one that was judged last. Where none is known, true
        if the conversations have one name, and this list had all that stands before the compaction in the other."""
        newest = next((call_id for call_id in reversed(ids) if call_id in self._texts), None)
        if newest is not None or not name or name != self._name:
            return newest == self._last
        at = next((at for at, item in enumerate(items) if is_compaction(item)), None)
        return at is not None and {said(item) for item in items[:at]} <= {said(item) for item in self._items}

    def judged(self, items: Items, tools: Mapping[str, str | Judge]) -> Items:
        """The items with markers in the results: older markers made true again, new results judged now; and with what
        is put back behind compactions."""
        for at in self._compactions(items):
            before = items[:at]
            if any(found.result.call_id not in self._texts for found in tool_items(before)):
                self._shown(before, tools)  # the list is read from its beginning
            keep = () if is_compaction(items[at]) else result_ids(items)
            sent = [as_function(item) for item in self._items or before]
            section = self._session.restored_section(str(said(items[at])), keep=keep, messages=sent)
            self._sections.append((items[at], section))
        self._items = items
        return self._shown(items, tools)

    def _compactions(self, items: Items) -> list[int]:
        """Where something stands in the list that a compaction left, and that was not there before: an item of the
        server's, or a message in the place of results."""
        known = [item for item, _ in self._sections]
        found = [at for at, item in enumerate(items) if is_compaction(item) and item not in known]
        if found or set(result_ids(self._items)) <= set(result_ids(items)):
            return found
        pairs = enumerate(zip(items, self._items, strict=False))
        at = next((at for at, (item, old) in pairs if item != old), len(items))
        is_new = at < len(items) and "call_id" not in items[at] and items[at] not in [*known, *self._items]
        return [at] if is_new else []

    def _shown(self, items: Items, tools: Mapping[str, str | Judge]) -> Items:
        items = list(items)
        for left, section in self._sections:
            if section and left in items:
                items.insert(items.index(left) + 1, {"role": "user", "content": section})
        results = tool_items(visible_to_model(items))
        for at, result in results:
            given, shown = self._texts.get(result.call_id, ("", ""))
            if given == result.output and shown != given:
                items[at] = with_item_text(items[at], shown)
        self._mend(items, results)
        for at, result in results:
            if result.call_id not in self._texts:
                reply = self._settings.told(answer_tool(self._session, result, tools.get(result.name)))
                shown = result.output if reply is None else reply.text
                self._texts[result.call_id], self._last = (result.output, shown), result.call_id
                items[at] = items[at] if shown == result.output else with_item_text(items[at], shown)
                time.sleep(0)  # the event loop's thread may go on
        return items

    def _mend(self, items: Items, results: Sequence[ToolItem]) -> None:
        """`mend_and_clear`. What it writes is remembered. A new result holds no older one's text for
        it, as it may become a marker."""
        plain = [as_function(item) for item in items]
        for at, result in results:
            if result.call_id not in self._texts:
                plain[at] = with_item_text(plain[at], "")
        mended = mend_and_clear(plain, self._session)
        for at, result in results:
            if mended[at] is not plain[at] and (text := text_of(mended[at])) is not None:
                items[at] = with_item_text(items[at], text)
                self._texts[result.call_id] = result.output, text
