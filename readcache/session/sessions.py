"""A session for each conversation and reader: for servers, middlewares and hooks that see many of them."""

from __future__ import annotations

import os

from readcache.disk.forks import SESSIONS, ForkLock
from readcache.log.store import Store
from readcache.model.errors import StoreError
from readcache.model.policy import Policy
from readcache.session.session import PYTHON, Session


class Sessions:
    """Hands out one `Session` for each conversation and reader.

    `root` is the directory that relative paths are of. `host`: as for `Session`; an adapter may name itself before it
    asks for the first one. `store`: None (memory, one for each conversation), or what `Session` takes.
    What two conversations were shown is never mixed; the readers of one share its store, so that a write by one is
    known to the others. Safe to call from any thread.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        *,
        store: str | os.PathLike[str] | Store | None = None,
        policy: Policy = Policy(),  # noqa: B008  frozen
        local: bool | None = None,
        host: str = PYTHON,
    ) -> None:
        self.root = os.path.abspath(root)
        self.policy = policy
        self.host = host
        self._store = store
        self._local = local
        self._lock = ForkLock(SESSIONS)
        self._open: dict[str, dict[str, Session]] = {}  # conversation -> reader -> session

    def get(self, conversation: str, agent: str = "main") -> Session:
        """The session of the reader `agent` in that conversation: the same one each time, until it is closed."""
        conversation, agent = str(conversation), str(agent)
        with self._lock:
            readers = self._open.setdefault(conversation, {})
            if agent not in readers:
                readers[agent] = Session(
                    self.root,
                    session_id=conversation,
                    agent_id=agent,
                    store=_store_of(readers) if self._store is None else self._store,
                    policy=self.policy,
                    local=self._local,
                    host=self.host,
                )
            return readers[agent]

    def fork(self, conversation: str, agent: str, *, parent: str = "main", inherit: bool = False) -> Session:
        """The session of a new sub-agent of the reader `parent`, see `Session.fork`. `get` has it by its `agent_id`,
        which is another name where the conversation had a reader `agent`."""
        conversation, session = str(conversation), self.get(conversation, parent)
        with self._lock:
            session._readers.update(self._open.get(conversation, ()))
        child = session.fork(str(agent), inherit=inherit)
        with self._lock:
            self._open.setdefault(conversation, {})[child.agent_id] = child
        return child

    def close(self, conversation: str) -> None:
        """Ends a conversation: its sessions are closed, and in memory nothing of it stays. An unknown one is none."""
        with self._lock:
            readers = self._open.pop(str(conversation), {})
        for session in reversed(readers.values()):  # a sub-agent's has its parent's store
            session.close()

    def close_all(self) -> None:
        """Ends every conversation."""
        for conversation in list(self._open):
            self.close(conversation)


def _store_of(readers: dict[str, Session]) -> Store | None:
    """The store in memory that the other readers of the conversation share."""
    for session in readers.values():
        try:
            return session.reader.log.store
        except StoreError:
            return None
    return None
