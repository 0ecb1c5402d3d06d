"""Finds the reader of a request in LangChain: all threads, and some sub-agents, share a middleware."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from readcache import Budget, Policy, Session, Sessions
from readcache.hosts.langchain.messages import as_chat, call_ids, messages_of
from readcache.hosts.shell_directory import ShellDirectory

_MOST = 256  # conversations at once; the next request of one that was dropped shows every line again


@dataclass(slots=True)
class AgentReader:
    """An agent in a conversation."""

    session: Session
    shells: dict[str, ShellDirectory] = field(default_factory=dict)  # by tool
    _sent: Sequence[dict[str, Any]] = ()  # the last request's messages, as far as markers go
    _restored: dict[str, str] = field(default_factory=dict)  # a summary -> the section behind it

    def shell(self, tool: str) -> ShellDirectory:
        """Where the shell of that tool is."""
        return self.shells.setdefault(tool, ShellDirectory(self.session.root))

    def mend(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`Session.mend`. The messages are remembered until the next request: a summary may take their place."""
        self._sent = messages
        return self.session.mend(messages)

    def with_restored(
        self, messages: Sequence[BaseMessage], state: Sequence[BaseMessage], budget: Budget
    ) -> list[BaseMessage]:
        """The messages, with what the reader loses by a summary behind it: the same section in each request. `state`:
        the messages of the agent's state, of which some summaries take none away."""
        return [self._longer(message, messages, state, budget) for message in messages]

    def _longer(
        self, message: BaseMessage, messages: Sequence[BaseMessage], state: Sequence[BaseMessage], budget: Budget
    ) -> BaseMessage:
        summary = message.content
        if message.additional_kwargs.get("lc_source") != "summarization" or not isinstance(summary, str):
            return message
        if summary not in self._restored:
            keep = call_ids(messages)
            before = [*self._sent, *map(as_chat, state)]
            plan = self.session.restore_plan(keep=keep, budget=budget, messages=before)
            self.session.compacted(keep=keep, restored=plan if plan.items else None)
            self._restored[summary] = plan.render()
        section = self._restored[summary]
        return message.model_copy(update={"content": f"{summary}\n\n{section}"}) if section else message


class AgentReaders:
    """The readers of all threads. `store`: as for `Session`; None: in memory."""

    def __init__(self, root: str, store: str | None, policy: Policy) -> None:
        self._sessions = Sessions(root, store=store, policy=policy, host="langchain")
        self._is_durable = store is not None
        self._open: dict[str, tuple[str, dict[str, AgentReader]]] = {}  # thread -> name, readers; the newest is last
        self._lock = threading.RLock()

    def of(self, request: Any, messages: Sequence[BaseMessage] = ()) -> AgentReader:
        """The reader that makes a request, of a tool or of the model. `messages`: those that a new reader begins
        with."""
        thread, place = _place(request)
        with self._lock:
            # What is in memory is known to this process alone, and its markers have a tag of their own.
            new = thread if self._is_durable else f"{thread}-{secrets.token_hex(4)}"
            name, readers = self._open[thread] = self._open.pop(thread, (new, {}))
            if len(self._open) > _MOST:
                self._sessions.close(self._open.pop(next(iter(self._open)))[0])
            if place not in readers:
                readers[place] = AgentReader(self._begin(name, place or "main", readers, call_ids(messages)))
            return readers[place]

    def close(self) -> None:
        """Ends every conversation."""
        with self._lock:
            self._open.clear()
            self._sessions.close_all()

    def _begin(self, name: str, place: str, readers: dict[str, AgentReader], shown: Sequence[str]) -> Session:
        """If the messages are a copy of another reader's, the session begins with that reader's view."""
        session = self._sessions.get(name, place)
        if shown and not session.view.deliveries:
            for other in reversed(readers.values()):
                if any(map(other.session.view.is_visible, shown)):
                    return other.session.fork(place, inherit=True)
        return session


def _place(request: Any) -> tuple[str, str]:
    """The thread, and in it the namespace of the agent's graph: "", or one for each run of a sub-agent."""
    running = request.runtime.execution_info
    first = next(iter(messages_of(request.state)), None)  # without a checkpointer there is no thread
    return running.thread_id or f"from {getattr(first, 'id', None)}", running.checkpoint_ns.rpartition("|")[0]
