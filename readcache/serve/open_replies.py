"""The unconfirmed replies of one connection."""

from __future__ import annotations

import threading

from readcache import Outcome, Reply, Session

_Reader = tuple[str, str]  # conversation, agent


class OpenReplies:
    """Unconfirmed replies, by reader. Safe to call from any thread.

    The client need not confirm them itself. Its next request for the same reader confirms that it showed them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[_Reader, list[str]] = {}

    def add(self, conversation: str, agent: str, reply: Reply) -> None:
        """Add a reply, if it has an omission to confirm."""
        if reply.outcome is not Outcome.FULL:
            with self._lock:
                self._open.setdefault((conversation, agent), []).append(reply.call_id)

    def confirm(self, conversation: str, agent: str, session: Session) -> None:
        """Commit this reader's replies, because the client continued after them."""
        for call_id in self.take(conversation, agent):
            session.commit(call_id)

    def readers(self, conversation: str) -> list[str]:
        """Return the agents of a conversation that have unconfirmed replies."""
        with self._lock:
            return [agent for name, agent in self._open if name == conversation]

    def take(self, conversation: str, agent: str) -> list[str]:
        """Remove this reader's replies, because the client itself says what it showed. Return their call IDs."""
        if not self._open:  # nearly always; this saves the lock
            return []
        with self._lock:
            return self._open.pop((conversation, agent), [])
