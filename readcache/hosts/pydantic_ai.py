"""Pydantic AI: a capability.

    agent = Agent(..., capabilities=[ReadcacheCapability("/repo")])

It places itself after the processors of history and compaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import messages as api
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering

from readcache.core.messages.messages import Kind, Message, Part
from readcache.hosts.adapter_settings import fallback
from readcache.hosts.judged_lists import ListAdapter


class ReadcacheCapability(ListAdapter, AbstractCapability[Any]):  # type: ignore[misc]  # no types where these are checked
    """A capability that omits visible lines from requests. Agents may share it. Raise UsageError for an invalid value.

    `root`: the directory that relative paths start from. `tools`: the kinds of tools, by name: "bash", "read", "write",
    "other", "ignore" or a function. Only needed for tools whose names and arguments do not show their kind. `settings`:
    as for `adapter_settings`, e.g. `store`, `policy`, `restore`, `clear` and `on_reply`.
    """

    host = "pydantic-ai"

    def get_ordering(self) -> CapabilityOrdering:
        """Return the last position, after all other capabilities."""
        return CapabilityOrdering(position="innermost")

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Put markers into the messages that the model is sent. The history does not change."""
        given = request_context.messages

        def judged() -> list[Any]:
            return self._judged(given, _name_of(ctx), getattr(request_context, "model", ""))

        sent = await asyncio.to_thread(fallback, judged, given)
        return replace(request_context, messages=sent)

    async def after_model_request(self, ctx: Any, *, response: Any, **_: Any) -> Any:
        """Record the size of the request. The response does not change."""
        usage = {"input_tokens": response.usage.input_tokens}  # with cached tokens, from every provider
        await asyncio.to_thread(self._lists.answered, _name_of(ctx), {"usage": usage})
        return response

    def _judged(self, messages: Sequence[Any], name: str, model: object) -> list[Any]:
        texts, sections = self._lists.judged([as_message(message) for message in messages], name, model=model)
        parts = [[*message.parts] for message in messages]
        for (at, nth), text in texts.items():
            parts[at][nth] = replace(parts[at][nth], content=text)
        for at, section in sections.items():
            request = next((n for n in range(at, len(messages)) if isinstance(messages[n], api.ModelRequest)), None)
            if request is not None:
                parts[request].append(api.UserPromptPart(section))
        changed = {at for at, _ in texts} | ({*range(len(messages))} if sections else set())
        return [replace(m, parts=parts[at]) if at in changed else m for at, m in enumerate(messages)]


def _name_of(ctx: Any) -> str:
    return f"{ctx.conversation_id} {getattr(ctx.agent, 'name', None)}"


def as_message(message: Any) -> Message:
    """Return the message in readcache's form, with one part for each of its own parts."""
    role = "user" if isinstance(message, api.ModelRequest) else "assistant"
    return Message(role, tuple(map(as_part, message.parts)), message)


def as_part(part: Any) -> Part:
    """Return the part if it is a text, a call, a textual result or a compaction. Otherwise return an empty part."""
    if isinstance(part, api.CompactionPart):
        return Part(Kind.OTHER, str(part.content or part.provider_details), name="compaction")
    if isinstance(part, api.ToolCallPart):
        return Part(Kind.CALL, part.args_as_json_str(), part.tool_call_id, part.tool_name, part.args_as_dict())
    content: Any = getattr(part, "content", None)
    if isinstance(part, api.ToolReturnPart) and isinstance(content, str):
        is_error = part.outcome != "success"
        return Part(Kind.RESULT, content, part.tool_call_id, part.tool_name, is_error=is_error)
    if isinstance(part, api.UserPromptPart) and not isinstance(content, str):
        content = "\n".join(each for each in content if isinstance(each, str))
    is_said = isinstance(part, (api.TextPart, api.UserPromptPart, api.SystemPromptPart))
    return Part(Kind.TEXT, str(content)) if is_said else Part(Kind.OTHER)
