"""Finds the reader of a request in LangChain: all threads, and some sub-agents, share a middleware."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from readcache import Session, Sessions
from readcache.context import mend_and_clear
from readcache.hosts.adapter_settings import AdapterSettings
from readcache.hosts.langchain.messages import as_chat, call_ids, messages_of
from readcache.hosts.readers import Readers
from readcache.hosts.shell_directory import ShellDirectory


class AgentReader:
    """An agent in a conversation."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.shells: dict[str, ShellDirectory] = {}  # by tool
        self._sent: Sequence[dict[str, Any]] = ()  # the last request's messages, as far as markers go

    def shell(self, tool: str) -> ShellDirectory:
        """Where the shell of that tool is."""
        return self.shells.setdefault(tool, ShellDirectory(self.session.root))

    def mend(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`mend_and_clear`. The messages are remembered until the next request: a summary may take their place."""
        self._sent = messages
        return mend_and_clear(messages, self.session)

    def stays_true(self, messages: list[dict[str, Any]], results: Sequence[str]) -> bool:
        """True if these messages, with these texts of results, can be sent without mending. Without our markers they
        are not the reader's: middleware asks models of its own, too."""
        if not any(map(self.session.markers_in, results)):
            return True
        self._sent = messages
        return self.session.mend(messages) is messages

    def with_restored(self, messages: Sequence[BaseMessage], state: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The messages, with what the reader loses by a summary behind it: the same section in each request. `state`:
        the messages of the agent's state, of which some summaries take none away."""
        out = list(messages)
        for at, message in enumerate(messages):
            summary, kind = message.content, message.additional_kwargs.get("lc_source")
            if kind == "summarization" and isinstance(summary, str):
                before = [*self._sent, *map(as_chat, state)]
                section = self.session.restored_section(summary, keep=call_ids(messages), messages=before)
                out[at] = message.model_copy(update={"content": f"{summary}\n\n{section}"}) if section else message
        return out


class AgentThread:
    """The agents of one thread; they share a store. `name`: of its session."""

    def __init__(self, name: str, sessions: Sessions) -> None:
        self._name, self._sessions = name, sessions
        self._agents: dict[str, AgentReader] = {}  # by place

    def agent(self, place: str, shown: Sequence[str]) -> AgentReader:
        """The agent at that place. If what is `shown` to a new one was shown to another one, it begins with the view of
        that one: its messages are a copy."""
        if place not in self._agents:
            self._agents[place] = AgentReader(self._begin(place or "main", shown))
        return self._agents[place]

    def _begin(self, place: str, shown: Sequence[str]) -> Session:
        session = self._sessions.get(self._name, place)
        if shown and not session.view.deliveries:
            for other in reversed(self._agents.values()):
                if any(map(other.session.view.is_visible, shown)):
                    return other.session.fork(place, inherit=True)
        return session

    def stats(self) -> Counter[str]:
        """The counters of all agents."""
        counts = Counter[str]()
        for agent in self._agents.values():
            counts.update(agent.session.stats())
        return counts

    def close(self) -> None:
        """Ends the thread's sessions."""
        self._sessions.close(self._name)


class AgentReaders(Readers[AgentThread]):
    """The readers of all threads."""

    def __init__(self, settings: AdapterSettings) -> None:
        super().__init__()
        self._settings = settings
        self._sessions = Sessions(settings.root, store=settings.store, policy=settings.policy, host="langchain")

    def of(self, request: Any, messages: Sequence[BaseMessage] = ()) -> AgentReader:
        """The reader that makes a request, of a tool or of the model. `messages`: those that a new reader begins
        with."""
        thread, place = _place(request)
        with self.lock:
            return self.get(thread, lambda: self._begin(thread)).agent(place, call_ids(messages))

    def _begin(self, thread: str) -> AgentThread:
        # What is in memory is known to this process alone, and its markers have a tag of their own.
        name = thread if self._settings.store is not None else f"{thread}-{secrets.token_hex(4)}"
        return AgentThread(name, self._sessions)


def _place(request: Any) -> tuple[str, str]:
    """The thread, and in it the namespace of the agent's graph: "", or one for each run of a sub-agent."""
    running = request.runtime.execution_info
    first = next(iter(messages_of(request.state)), None)  # without a checkpointer there is no thread
    return running.thread_id or f"from {getattr(first, 'id', None)}", running.checkpoint_ns.rpartition("|")[0]
