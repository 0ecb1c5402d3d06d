"""The OpenAI Agents SDK: a `call_model_input_filter`.

    config = RunConfig(call_model_input_filter=ReadcacheFilter("/repo"))
    await Runner.run(agent, "fix it", run_config=config)

The SDK keeps every result as the tool gave it, and sends the whole list to the model each time. The filter judges the
new results in the list, and puts the same markers into the older ones again. So the list itself shows what its reader
sees, and one filter may serve all runs, agents and sub-agents.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from readcache import Budget, Frame, Marks, Policy, Reply
from readcache.core.messages.blocks import as_mapping
from readcache.core.messages.editing import with_result_text
from readcache.core.messages.messages import Kind, Message, Part, normalise_one
from readcache.core.model.text import digest
from readcache.core.model.tool_call import ToolCall
from readcache.hosts.adapter_settings import fallback
from readcache.hosts.judged_lists import JudgedLists, ListAdapter
from readcache.hosts.tool_results import Judge

Item = Mapping[str, Any]
Named = str | Callable[[Any], str | None] | None


class ReadcacheFilter(ListAdapter):
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
        if getattr(getattr(data.agent, "model_settings", None), "truncation", None) == "auto":
            return sent  # the server truncates a list that does not fit into its window

        def judged() -> Any:
            name = self._named(data) if callable(self._named) else self._named
            model = getattr(data.agent, "model", "")
            return replace(sent, input=self._judged(list(sent.input), str(name or ""), model))

        return await asyncio.to_thread(fallback, judged, sent)  # `sent` has every result as the tool gave it

    def _judged(self, items: list[Item], name: str, model: object) -> list[Item]:
        messages, out = [message_of_item(item) for item in items], list[Item]()
        texts, sections = self._lists.judged(messages, name, log=name, model=model)
        for at, item in enumerate(items):
            out.append(with_item_text(messages[at].raw, texts[at, 0]) if (at, 0) in texts else item)
            if at in sections:
                out.append({"role": "user", "content": sections[at]})
        return out


# ---------------------------------------------------------------- items of the Responses API, as the SDK sends them

_FAILED = ("An error occurred while running the tool", "An error occurred while parsing tool arguments")
_LATE = re.compile(r"Tool '.*' timed out after [\d.]+ seconds\.?\Z")
# The header that a sandbox's tools write before an output.
_CHUNK = re.compile(
    r"\AChunk ID: \w+\nWall time: [\d.]+ seconds\n(?:Process exited with code (?P<status>-?\d+)\n)?"
    r"(?P<goes_on>Process running with session ID \d+\n)?(?P<is_truncated>Original token count: \d+\n)?Output:\n"
)


def message_of_item(item: Item) -> Message:
    """Return the item as a message. The model's texts, its calls and compactions have the role "assistant"."""
    item = as_mapping(item) or {}
    kind = str(item.get("type") or "")
    if kind.startswith("compaction"):
        return Message("assistant", (Part(Kind.OTHER, digest(str(item.get("encrypted_content"))), name=kind),), item)
    message = normalise_one(_as_function(item))
    role = message.role or ("tool" if kind.endswith("_output") else "assistant")
    return Message(role, message.parts, item)


def with_item_text(item: Item, text: str) -> Item:
    """Return the item of a result with another text."""
    if _is_shell_output(item):
        known = [key for key in ("output", "shell_output") if item.get(key)]
        return {**item, **{key: [{**item[key][0], "stdout": text}] for key in known}}
    return with_result_text(item, item["call_id"], text)


def with_details(result: ToolCall, message: Message) -> ToolCall:
    """Return the result with the details that the SDK's tools give in its text or item: failure, exit status, header,
    and whether it is complete."""
    item, text = message.raw, result.output
    if text.startswith(_FAILED) or _LATE.match(text):
        return replace(result, is_error=True)
    if chunk := _CHUNK.match(text):
        status = None if chunk["status"] is None else int(chunk["status"])
        is_complete = not (chunk["goes_on"] or chunk["is_truncated"])
        return replace(result, complete=is_complete, exit_code=status, frame=Frame(chunk[0].count("\n")))
    if _is_shell_output(item):
        outcome = item["output"][0].get("outcome")
        outcome = outcome if isinstance(outcome, Mapping) else {}
        max_length = item.get("max_output_length")
        is_complete = outcome.get("type") != "timeout" and (max_length is None or len(text) < int(max_length))
        return replace(result, complete=is_complete, exit_code=outcome.get("exit_code"))
    return result


def _is_shell_output(item: Item) -> bool:
    """Return True for the output of a single shell command."""
    outputs = item.get("output") if item.get("type") == "shell_call_output" else None
    return isinstance(outputs, list) and len(outputs) == 1 and isinstance(outputs[0].get("stdout"), str)


def _as_function(item: Item) -> Item:
    """Return a function call or its output that replaces an item of the shell tool. Return other items unchanged."""
    if _is_shell_output(item):
        return {"type": "function_call_output", "call_id": item["call_id"], "output": item["output"][0]["stdout"]}
    if item.get("type") == "shell_call":
        commands = (item.get("action") or {}).get("commands") or []
        given = json.dumps({"command": commands[0]} if len(commands) == 1 else {})
        return {"type": "function_call", "call_id": item.get("call_id"), "name": "shell", "arguments": given}
    return item
