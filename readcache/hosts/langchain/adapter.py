"""LangChain 1 and deepagents: one middleware, the last of the list.

    agent = create_agent(model, tools, middleware=[..., ReadcacheMiddleware("/repo")])

The agent's state holds what the model was shown, markers included, and beside each result the lines omitted from it.
Context editing and deepagents' summaries change requests alone: markers are mended in the request, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, ToolMessage

from readcache import Budget, Mode, Policy
from readcache.hosts.adapter_settings import policy_by_settings
from readcache.hosts.fallback import fallback
from readcache.hosts.langchain.messages import (
    as_chat,
    asked_by,
    in_full,
    messages_of,
    tool_result,
    with_reply,
)
from readcache.hosts.langchain.readers import AgentReaders
from readcache.hosts.tool_results import Judge, answer_tool

_MOST_CHARS = 80_000  # characters of a result: deepagents puts longer ones into a file, where no marker belongs


class ReadcacheMiddleware(AgentMiddleware[Any, Any, Any]):  # type: ignore[misc]  # no types where these are checked
    """`root`: the directory that relative paths are of. `store`: as for `Session`. `policy`: None for what READCACHE
    and READCACHE_POLICY say. `tools`: by name, "bash", "read", "write", "other", "ignore" or a function, where names
    and arguments do not tell what a tool is. `restore`: how much of what was read is put back behind a summary; None:
    nothing."""

    def __init__(
        self,
        root: str = ".",
        *,
        store: str | None = None,
        policy: Policy | None = None,
        tools: Mapping[str, str | Judge] | None = None,
        restore: Budget | None = Budget(),  # noqa: B008  frozen
    ) -> None:
        super().__init__()
        policy = policy or policy_by_settings({})
        self._readers, self._mode = AgentReaders(root, store, policy), policy.mode
        self._tools, self._restore = dict(tools or {}), restore

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """What the tool gave, as the model is to see it."""
        return self._shown(request, handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same, awaited."""
        return self._shown(request, await handler(request))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """The model's answer to messages of which each marker is true."""
        return handler(self._mended(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same, awaited."""
        return await handler(self._mended(request))

    def close(self) -> None:
        """Ends all conversations, and gives the store free."""
        self._readers.close()

    def _shown(self, request: Any, result: Any) -> Any:
        return fallback(lambda: self._judged(request, result), result)

    def _judged(self, request: Any, result: Any) -> Any:
        """Untouched stay commands to the graph, answers to the user, and results that a program asked for."""
        call, batch = request.tool_call, asked_by(request.state, request.tool_call["id"])
        if batch is None or not isinstance(result, ToolMessage) or getattr(request.tool, "return_direct", False):
            return result
        reader = self._readers.of(request)
        shell = reader.shell(call["name"])
        stays = "restart" in getattr(request.tool, "args", ())  # ShellToolMiddleware's shell
        told = tool_result(result, call, batch, shell.now if stays else None)
        if told is None:
            return result
        reply = answer_tool(reader.session, told, self._tools.get(call["name"]))
        if stays:
            timed_out = isinstance(result.artifact, dict) and result.artifact.get("timed_out")
            shell.ran(str(call["args"].get("command")), restarted=bool(call["args"].get("restart") or timed_out))
        if reply is None or reply.text == told.output or len(reply.text) > _MOST_CHARS:
            return result
        return with_reply(result, reply, reader.session.session_id)

    def _mended(self, request: Any) -> Any:
        before: Sequence[BaseMessage] = request.messages
        after = fallback(lambda: self._true(request, before), None)
        if after is None:  # a marker that may be untrue must not stay
            after = [in_full(message) for message in before]
        is_same = len(after) == len(before) and all(a is b for a, b in zip(after, before, strict=False))
        return request if is_same else request.override(messages=after)

    def _true(self, request: Any, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The messages with every marker true; without markers if nothing may be omitted."""
        if self._mode is Mode.OFF:
            return [in_full(message) for message in messages]
        reader = self._readers.of(request, messages)
        if [message.type for message in messages_of(request.state)[-1:]] == ["human"]:
            reader.shells.clear()  # the agent begins, and its shells with it
        messages = [in_full(m, reader.session.session_id if self._mode is Mode.ON else "") for m in messages]
        if self._restore is not None:
            messages = reader.with_restored(messages, messages_of(request.state), self._restore)
        chat = [as_chat(message) for message in messages]
        pairs = zip(messages, chat, reader.mend(chat), strict=True)
        return [m if new is old else m.model_copy(update={"content": new["content"]}) for m, old, new in pairs]
