"""LangChain 1 and deepagents: one middleware, the last of the list.

    agent = create_agent(model, tools, middleware=[..., ReadcacheMiddleware("/repo")])

The agent's state contains what the model was shown, including markers, and beside each result the lines that were
omitted from it. Context editing and deepagents' summaries change only requests, so markers are repaired in the request,
too.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook

from readcache import Budget, Marks, Mode, Policy, Reply, Session
from readcache.context import mend_and_clear
from readcache.context.clearing import record_answer
from readcache.hosts.adapter_settings import LOG, AdapterSettings, adapter_settings, fallback, model_name
from readcache.hosts.langchain.messages import as_chat, asked_by, messages_of, tool_result, with_lines_back, with_reply
from readcache.hosts.tool_results import Judge, ShellDirectory, answer_tool, tool_kinds

_MOST_CHARS = 80_000  # characters of a result: deepagents moves longer ones to a file, where no marker belongs


class ReadcacheMiddleware(AgentMiddleware[Any, Any, Any]):  # type: ignore[misc]  # no types where these are checked
    """Middleware that omits visible lines from results. Raise UsageError for an invalid value.

    `root`: the directory that relative paths start from. `store`: as for `Session`; None for READCACHE_STORE, or memory
    if that is not set. `policy`: a Policy, or the name of a preset; None for READCACHE and READCACHE_POLICY.
    `on_reply`: called with each Reply.

    `tools`: the kinds of tools, by name: "bash", "read", "write", "other", "ignore" or a function. Only needed for
    tools whose names and arguments do not show their kind.

    `restore`: how much to restore after a summary: a Budget, True for the default one, or False for nothing. `clear`:
    when to clear old results in requests: Marks, True for the default ones, None for READCACHE_CLEAR.
    """

    def __init__(
        self,
        root: str = ".",
        *,
        store: str | None = None,
        policy: Policy | str | None = None,
        tools: Mapping[str, str | Judge] | None = None,
        restore: Budget | bool | None = True,
        clear: Marks | tuple[int, int] | bool | None = None,
        on_reply: Callable[[Reply], object] | None = None,
    ) -> None:
        super().__init__()
        given = {"root": root, "store": store, "policy": policy, "restore": restore}
        self._settings = adapter_settings({**given, "clear": clear, "on_reply": on_reply})
        self._tools = tool_kinds(tools)
        self._readers = AgentReaders(self._settings)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Return the tool's result as the model will see it."""
        return self._shown(request, handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same as `wrap_tool_call`, asynchronously."""
        return await asyncio.to_thread(self._shown, request, await handler(request))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Return the model's answer to the request's messages, in which every marker is true."""
        sent = self._repaired(request)
        try:
            with sent_if(partial(self._is_true, sent)):
                return self._answered(request, handler(sent))
        except NotSent:
            return handler(self._without_markers(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same as `wrap_model_call`, asynchronously."""
        sent = await asyncio.to_thread(self._repaired, request)
        try:
            with sent_if(partial(self._is_true, sent)):
                return self._answered(request, await handler(sent))
        except NotSent:
            return await handler(self._without_markers(request))

    def stats(self) -> dict[str, int]:
        """Return the counters of `Session.stats`, summed over all agents and threads."""
        return self._readers.sessions.stats()

    def close(self) -> None:
        """End all conversations, and release the store."""
        self._readers.sessions.close_all()

    def _shown(self, request: Any, result: Any) -> Any:
        return result if self._is_off() else fallback(lambda: self._judged(request, result), result)

    def _judged(self, request: Any, result: Any) -> Any:
        """Return the result as the model will see it. Commands to the graph, answers to the user, and results that a
        program asked for are not changed."""
        call, batch = request.tool_call, asked_by(request.state, request.tool_call["id"])
        if batch is None or not isinstance(result, ToolMessage) or getattr(request.tool, "return_direct", False):
            return result
        reader = self._readers.of(request)
        shell = reader.shell(call["name"])
        stays = "restart" in getattr(request.tool, "args", ())  # ShellToolMiddleware's shell, which keeps its directory
        told = tool_result(result, call, batch, shell.now if stays else None)
        if told is None:
            return result
        reply = self._settings.told(answer_tool(reader.session, told, self._tools.get(call["name"])))
        if stays:
            timed_out = isinstance(result.artifact, dict) and result.artifact.get("timed_out")
            shell.follow(str(call["args"].get("command")), restarted=bool(call["args"].get("restart") or timed_out))
        if reply is None or reply.text == told.output or len(reply.text) > _MOST_CHARS:
            return result
        return with_reply(result, reply, reader.session.session_id)

    def _repaired(self, request: Any) -> Any:
        after = None if self._is_off() else fallback(lambda: self._true(request, request.messages), None)
        if after is None:  # a marker that may be untrue must not stay
            after = [with_lines_back(message) for message in request.messages]
        return request.override(messages=after)

    def _answered(self, request: Any, response: Any) -> Any:
        """Record the size of the request, and return the response."""
        if self._settings.policy.clear is not None:
            for message in getattr(getattr(response, "model_response", response), "result", [response]):
                fallback(partial(record_answer, self._readers.of(request).session, message), None)
        return response

    def _is_off(self) -> bool:
        return self._settings.policy.mode is Mode.OFF

    def _is_true(self, request: Any, sent: Sequence[BaseMessage]) -> bool:
        """Return True if every marker of the request is still true when the model is sent these messages."""
        ours, chat = [[as_chat(message) for message in messages] for messages in (request.messages, sent)]
        texts = [str(message.text) for message in sent if isinstance(message, ToolMessage)]
        return chat[-len(ours) :] == ours or fallback(lambda: self._readers.of(request).stays_true(chat, texts), False)

    def _without_markers(self, request: Any) -> Any:
        """Return the request with every line, and omit nothing from now on."""
        LOG.warning(
            "middleware listed after ReadcacheMiddleware removed lines that markers point at, so readcache omits "
            "nothing from now on: list ReadcacheMiddleware last"
        )
        self._settings = replace(self._settings, policy=replace(self._settings.policy, mode=Mode.OFF))
        return self._repaired(request)

    def _true(self, request: Any, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the messages with every marker true, or without markers if readcache only advises."""
        is_on = self._settings.policy.mode is Mode.ON
        reader = self._readers.of(request, messages)
        reader.session.use_model(model_name(request.model))
        state = messages_of(request.state)
        if [message.type for message in state[-1:]] == ["human"]:
            reader.shells.clear()  # the agent starts, and its shells with it
        messages = [with_lines_back(m, reader.session.session_id if is_on else "") for m in messages]
        messages = reader.with_restored(messages, state)
        chat = [as_chat(message) for message in messages]
        pairs = zip(messages, chat, reader.mend(chat), strict=True)
        return [m if new is old else m.model_copy(update={"content": new["content"]}) for m, old, new in pairs]


# ------------------------------------------------------------ the messages that a model is really sent
# Middleware that is listed after this one may have changed them.


class NotSent(BaseException):
    """Raised to end a request before it is sent. Middleware that catches each Exception, to retry, does not catch
    it."""


class _Look(BaseCallbackHandler):  # type: ignore[misc]  # no types where these are checked
    def __init__(self, is_true: Callable[[Sequence[BaseMessage]], bool]) -> None:
        self._is_true = is_true

    def on_chat_model_start(self, _: Any, messages: list[list[BaseMessage]], **__: Any) -> None:
        if not all(map(self._is_true, messages)):
            raise NotSent


_LOOK: ContextVar[_Look | None] = ContextVar("readcache_look", default=None)
register_configure_hook(_LOOK, inheritable=False)


@contextmanager
def sent_if(is_true: Callable[[Sequence[BaseMessage]], bool]) -> Iterator[None]:
    """Raise NotSent inside the `with` block if a chat model would be sent messages for which `is_true` returns
    False."""
    token = _LOOK.set(_Look(is_true))
    try:
        yield
    finally:
        _LOOK.reset(token)


# ------------------------------------------------------------ the reader of a request
# All threads, and some sub-agents, share a middleware.


class AgentReader:
    """An agent in a conversation."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.shells: dict[str, ShellDirectory] = {}  # by tool
        self._sent: Sequence[dict[str, Any]] = ()  # the last request's messages, as chats

    def shell(self, tool: str) -> ShellDirectory:
        """Return the working directory of that tool's shell."""
        return self.shells.setdefault(tool, ShellDirectory(self.session.root))

    def mend(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Repair the markers and clear old results, see `mend_and_clear`. Remember the messages until the next request,
        because a summary may replace them."""
        self._sent = messages
        return mend_and_clear(messages, self.session)

    def stays_true(self, messages: list[dict[str, Any]], results: Sequence[str]) -> bool:
        """Return True if these messages can be sent without a repair. `results`: the texts of their results.

        Without readcache's markers, return True: the messages are not the reader's, because middleware also asks models
        for purposes of its own.
        """
        if not any(map(self.session.markers_in, results)):
            return True
        self._sent = messages
        return self.session.mend(messages) is messages

    def with_restored(self, messages: Sequence[BaseMessage], state: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the messages with a restored section after a summary: the lines that the reader loses by it. The
        section is the same text in each request.

        `state`: the messages of the agent's state. Some summaries remove none of them.
        """
        out = list(messages)
        for at, message in enumerate(messages):
            summary, kind = message.content, message.additional_kwargs.get("lc_source")
            if kind == "summarization" and isinstance(summary, str):
                before = [*self._sent, *map(as_chat, state)]
                section = self.session.restored_section(summary, keep=_call_ids(messages), messages=before)
                out[at] = message.model_copy(update={"content": f"{summary}\n\n{section}"}) if section else message
        return out


class AgentReaders:
    """The agents of all threads. The agents of one thread share a store."""

    def __init__(self, settings: AdapterSettings) -> None:
        self.sessions, self._is_durable = settings.sessions("langchain"), settings.store is not None

    def of(self, request: Any, messages: Sequence[BaseMessage] = ()) -> AgentReader:
        """Return the reader that makes this request, by a tool or the model. `messages`: the messages with which a new
        reader begins.

        If another reader of the thread was shown results in these messages, the new reader begins with that reader's
        view, because its messages are a copy.
        """
        thread, namespace = _thread_and_namespace(request)
        with self.sessions.lock:
            others = self.sessions.readers(thread)
            # Only this process knows a session in memory, so its markers need a tag of their own.
            name = thread if self._is_durable else f"{thread}-{secrets.token_hex(4)}"
            session = self.sessions.get(thread, namespace or "main", session_id=name)
            if not isinstance(session.notes, AgentReader):
                session.notes = AgentReader(session)
                shown = _call_ids(messages)
                source = next((other for other in others if any(map(other.view.is_visible, shown))), None)
                if source is not None and not session.view.calls.number:
                    session.reader.inherit(source.reader)
            return session.notes


def _call_ids(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the IDs of the calls whose results are in the messages."""
    return [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]


def _thread_and_namespace(request: Any) -> tuple[str, str]:
    """Return the thread, and the namespace of the agent's graph in it: "", or a new one for each run of a sub-agent."""
    running = request.runtime.execution_info
    first = next(iter(messages_of(request.state)), None)  # without a checkpointer there is no thread
    return running.thread_id or f"from {getattr(first, 'id', None)}", running.checkpoint_ns.rpartition("|")[0]
