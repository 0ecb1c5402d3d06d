"""Finds the reader of a request in LangChain: all threads, and some sub-agents, share a middleware."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from readcache import Session
from readcache.context import mend_and_clear
from readcache.hosts.adapter_settings import AdapterSettings
from readcache.hosts.langchain.messages import as_chat, call_ids, messages_of
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


class AgentReaders:
    """The agents of all threads; those of one thread share a store."""

    def __init__(self, settings: AdapterSettings) -> None:
        self.sessions, self._is_durable = settings.sessions("langchain"), settings.store is not None

    def of(self, request: Any, messages: Sequence[BaseMessage] = ()) -> AgentReader:
        """The reader that makes a request, of a tool or of the model. `messages`: those that a new reader begins with.
        If what they show was shown to another one of the thread, it begins with the view of that one: its messages are
        a copy."""
        thread, namespace = _thread_and_namespace(request)
        with self.sessions.lock:
            others = self.sessions.readers(thread)
            # What is in memory is known to this process alone, and its markers have a tag of their own.
            name = thread if self._is_durable else f"{thread}-{secrets.token_hex(4)}"
            session = self.sessions.get(thread, namespace or "main", session_id=name)
            if not isinstance(session.notes, AgentReader):
                session.notes = AgentReader(session)
                if not session.view.calls.number:
                    _begin(session, others, call_ids(messages))
            return session.notes


def _begin(session: Session, others: Sequence[Session], shown: Sequence[str]) -> None:
    source = next((other for other in others if any(map(other.view.is_visible, shown))), None)
    if source is not None:
        session.reader.inherit(source.reader)


def _thread_and_namespace(request: Any) -> tuple[str, str]:
    """The thread, and in it the namespace of the agent's graph: "", or one for each run of a sub-agent."""
    running = request.runtime.execution_info
    first = next(iter(messages_of(request.state)), None)  # without a checkpointer there is no thread
    return running.thread_id or f"from {getattr(first, 'id', None)}", running.checkpoint_ns.rpartition("|")[0]
