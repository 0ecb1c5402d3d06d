"""A session for each conversation and reader: for servers, middlewares and hooks that see many of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial

from readcache.disk.forks import SESSIONS, ForkLock
from readcache.log.store import Store
from readcache.model.policy import Policy
from readcache.session.session import PYTHON, Session


class Sessions:
    """Hands out one `Session` for each conversation and reader.

    `root` is the directory that relative paths are of. `host`, `is_off`: as for `Session`; an adapter may name
    itself before it asks for the first one. `store`: None (memory, one for each conversation), or what `Session` takes.
    What two conversations were shown is never mixed; the readers of one share its store, so that a write by one is
    known to the others. `most_readers`: how many are held at once; beyond that, the conversations unused for longest
    are let go, and their last results are shown again when they go on. Safe to call from any thread.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        *,
        store: str | os.PathLike[str] | Store | None = None,
        policy: Policy = Policy(),  # noqa: B008  frozen
        local: bool | None = None,
        host: str = PYTHON,
        most_readers: int | None = None,
        is_off: Callable[[], bool] = lambda: False,
    ) -> None:
        self.root = os.path.abspath(root)
        self.policy = policy
        self.host = host
        self._store, self._most_readers = store, most_readers
        self._make = partial(Session, self.root, policy=policy, local=local, is_off=is_off)
        self._lock = ForkLock(SESSIONS)
        self._open: dict[str, dict[str, Session]] = {}  # conversation -> reader -> session; newest last

    def get(self, conversation: str, agent: str = "main") -> Session:
        """The session of the reader `agent` in that conversation: the same one each time, until it is closed."""
        conversation, agent = str(conversation), str(agent)
        with self._lock:
            readers = self._open[conversation] = self._open.pop(conversation, {})
            if agent not in readers:
                store = self._store
                if store is None and readers:  # the one in memory that the other readers share
                    store = next(iter(readers.values())).reader.log.store
                readers[agent] = self._make(session_id=conversation, agent_id=agent, store=store, host=self.host)
            session = readers[agent]
            oldest = [] if self._most_readers is None else self._beyond(self._most_readers)
        for name in oldest:
            self.close(name, in_order=False)
        return session

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

    def inherit(self, conversation: str, source: str) -> None:
        """Let the main reader of a conversation that has just begun see what that of the conversation `source` does:
        its host made it from the other's messages."""
        self.get(conversation).reader.inherit(self.get(source).reader)

    def markers_in(self, text: str) -> list[str]:
        """The markers of any open conversation that stand in the text, in order of conversations."""
        with self._lock:
            sessions = [next(iter(readers.values())) for readers in self._open.values() if readers]
        return [found for session in sessions for found in session.markers_in(text)]

    def stats(self) -> dict[str, int]:
        """The counters of `Session.stats`, summed over the readers of all open conversations."""
        with self._lock:
            sessions = [session for readers in self._open.values() for session in readers.values()]
        counts = Counter[str]()
        for session in sessions:
            counts.update(session.stats())
        return dict(counts)

    def close(self, conversation: str, *, in_order: bool = True) -> None:
        """End a conversation: close its sessions and drop it from memory. An unknown name has no effect. `in_order`:
        False where its last results may not have reached the conversation."""
        with self._lock:
            readers = self._open.pop(str(conversation), {})
        for session in reversed(readers.values()):  # a sub-agent's has its parent's store
            session.end(in_order=in_order)

    def close_all(self) -> None:
        """Ends every conversation."""
        for conversation in self.conversations():
            self.close(conversation)

    def conversations(self) -> list[str]:
        """Those that are open, the newest last."""
        return list(self._open)

    def _beyond(self, most: int) -> list[str]:
        """The oldest conversations, as many as there are too many readers; never the newest."""
        too_many, oldest = sum(map(len, self._open.values())) - most, list[str]()
        for conversation, readers in list(self._open.items())[:-1]:
            if too_many <= 0:
                break
            too_many -= len(readers)
            oldest.append(conversation)
        return oldest
