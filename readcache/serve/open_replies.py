"""The replies of one connection whose client has not said what the model was shown."""

from __future__ import annotations

import threading

from readcache import Outcome, Reply, Session

_Reader = tuple[str, str]  # conversation, agent


class OpenReplies:
    """Replies by reader. A client that says nothing of them has shown them if it goes on: its next request for the
    same reader confirms them. Safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[_Reader, list[str]] = {}

    def add(self, conversation: str, agent: str, reply: Reply) -> None:
        """Note a reply, if there is something to confirm."""
        if reply.outcome is not Outcome.FULL:
            with self._lock:
                self._open.setdefault((conversation, agent), []).append(reply.call_id)

    def drop(self, conversation: str, agent: str) -> None:
        """The client says itself what was shown of this reader's replies."""
        self._take(conversation, agent)

    def confirm(self, conversation: str, agent: str, session: Session) -> None:
        """The client went on after this reader's replies."""
        for call_id in self._take(conversation, agent):
            session.commit(call_id)

    def readers(self, conversation: str) -> list[str]:
        """The agents of a conversation with open replies."""
        with self._lock:
            return [agent for name, agent in self._open if name == conversation]

    def _take(self, conversation: str, agent: str) -> list[str]:
        if not self._open:  # as nearly always
            return []
        with self._lock:
            return self._open.pop((conversation, agent), [])
