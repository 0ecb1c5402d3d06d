"""Find the reader of a request in LangChain. All threads, and some sub-agents, share a middleware."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from readcache import Session
from readcache.context import mend_and_clear
from readcache.hosts.adapter_settings import AdapterSettings
from readcache.hosts.langchain.messages import as_chat, call_ids, messages_of
from readcache.hosts.tool_results import ShellDirectory


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
                section = self.session.restored_section(summary, keep=call_ids(messages), messages=before)
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
                if not session.view.calls.number:
                    _begin(session, others, call_ids(messages))
            return session.notes


def _begin(session: Session, others: Sequence[Session], shown: Sequence[str]) -> None:
    source = next((other for other in others if any(map(other.view.is_visible, shown))), None)
    if source is not None:
        session.reader.inherit(source.reader)


def _thread_and_namespace(request: Any) -> tuple[str, str]:
    """Return the thread, and the namespace of the agent's graph in it: "", or a new one for each run of a sub-agent."""
    running = request.runtime.execution_info
    first = next(iter(messages_of(request.state)), None)  # without a checkpointer there is no thread
    return running.thread_id or f"from {getattr(first, 'id', None)}", running.checkpoint_ns.rpartition("|")[0]
