"""Keep the readers of a program that sees many conversations: one session for each conversation and agent."""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable, Hashable

from readcache.core.model.policy import Policy
from readcache.core.model.text import AGAIN
from readcache.log.forks import SESSIONS, ForkLock
from readcache.log.store import Store
from readcache.session.conversation import new_id
from readcache.session.session import PYTHON, Session


class Sessions:
    """A collection with one `Session` for each conversation and reader. Safe to call from any thread.

    `root`: the directory that relative paths start from. `host`, `is_off`: as for `Session`; an adapter may name itself
    before it requests the first session. `store`: None (memory, one store for each conversation), or as for `Session`.
    Texts of two conversations are never mixed. The readers of one conversation share its store, so that each knows the
    others' writes. `most_readers`: how many readers stay open. If there are more, the conversations unused for longest
    are closed. Their last results are shown again when they continue, because a call may be under way. A deep copy
    starts without readers.
    """

    MOST = 256  # readers that an adapter keeps open; a server has its own limit, since each reader opens two files

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
        self._store, self._local, self._is_off, self._most_readers = store, local, is_off, most_readers
        self.lock = ForkLock(SESSIONS)
        self._place: Hashable = None
        self._open: dict[tuple[Hashable, str], dict[str, Session]] = {}  # (place, conversation) -> readers, by use
        self._ended = Counter[str]()  # the counters of readers that the limit or `close_all` closed
        self.lent: dict[tuple[str, str], Session] | None = None
        self._is_only = False

    def __deepcopy__(self, memo: object) -> Sessions:
        other = copy.copy(self)
        other.lock, other._open, other._ended = ForkLock(SESSIONS), {}, Counter()
        return other

    def get(
        self, conversation: str, agent: str = "main", *, session_id: str | None = None, is_new: bool = False
    ) -> Session:
        """Return the session of the reader `agent` in that conversation. Return the same object until it is closed.

        `session_id`: the conversation's name in the store, if it is not open yet (default: `conversation`). `is_new`: a
        reader that is not open yet gets a new name in the store, so that it starts without having seen anything.
        """
        session = self._get(str(conversation), str(agent), session_id, is_new)
        self._lend(str(conversation), str(agent), session)
        return session

    def _get(self, conversation: str, agent: str, session_id: str | None = None, is_new: bool = False) -> Session:
        with self.lock:
            readers = self._open[self._place, conversation] = self._open.pop((self._place, conversation), {})
            first = next(iter(readers.values()), None)
            session = readers.pop(agent, None) or Session(
                self.root,
                session_id=first.session_id if first else session_id or conversation,
                agent_id=f"{agent}{AGAIN}{new_id(4)}" if is_new else agent,
                # Readers of one conversation share the store in memory.
                store=first.reader.log.store if first and self._store is None else self._store,
                policy=self.policy,
                local=self._local,
                host=self.host,
                is_off=self._is_off,
            )
            readers[agent] = session
            oldest = self._take_oldest()
        for gone in oldest:
            self._end(gone, is_last=False)
        return session

    def fork(self, conversation: str, agent: str, *, parent: str = "main", inherit: bool = False) -> Session:
        """Return the session of a new sub-agent of the reader `parent`; see `Session.fork`. `get` finds it by its
        `agent_id`, which differs from `agent` if the conversation had a reader of that name."""
        conversation, session = str(conversation), self.get(conversation, parent)
        with self.lock:
            session._readers.update(self._open.get((self._place, conversation), ()))
        child = session.fork(str(agent), inherit=inherit)
        with self.lock:
            self._open.setdefault((self._place, conversation), {})[child.agent_id] = child
        self._lend(conversation, child.agent_id, child)
        return child

    def inherit(self, conversation: str, source: str) -> None:
        """Copy the view of the main reader of `source` to the main reader of a conversation that has just begun,
        because the host made it from the messages of `source`. The source is only read, and not lent: its last results
        stay as certain or unconfirmed as they were."""
        self.get(conversation).reader.inherit(self._get(str(source), "main").reader)

    def at(self, place: Hashable, root: str, policy: Policy, host: str, *, is_only: bool = False) -> Sessions:
        """Return these sessions with another directory, policy and host, for one request. The limit applies to all of
        them together. `place` separates conversations of the same name. `is_only`: the process answers no other
        request. `lent` of the returned object has the sessions that it handed out, by conversation and agent."""
        view = copy.copy(self)
        view._place, view.root, view.policy, view.host, view.lent = place, root, policy, host, {}
        view._is_only = is_only
        return view

    def end_event(self, *, was_shown: bool, keep: bool) -> list[tuple[str, str, str]]:
        """End the event for which `at` returned this object. Return (conversation, cause, detail) of the failures that
        no store has recorded.

        `was_shown`: the model was shown the results. If not, they are shown again when the conversation continues.
        `keep`: keep the event's conversations open for the next event.
        """
        failed, lent = list[tuple[str, str, str]](), self.lent or {}
        for (conversation, _), session in lent.items():
            failed += ((conversation, each.cause, each.detail) for each in session.reader.log.unlogged())
            session.reader.close(in_order=was_shown)
        for conversation in set() if keep and was_shown else {conversation for conversation, _ in lent}:
            self.close(conversation, in_order=was_shown)
        return failed

    def readers(self, conversation: str | None = None) -> list[Session]:
        """Return the open sessions of one conversation or of all, most recently used first."""
        with self.lock:
            found = [readers for (_, name), readers in self._open.items() if conversation in (None, name)]
            return [session for readers in reversed(found) for session in reversed(readers.values())]

    def markers_in(self, text: str) -> list[str]:
        """Return the markers of open conversations that the text contains, in the order of the conversations."""
        with self.lock:
            sessions = [next(iter(readers.values())) for readers in self._open.values() if readers]
        return [found for session in sessions for found in session.markers_in(text)]

    def stats(self) -> dict[str, int]:
        """Return the counters of `Session.stats`, summed over readers that are open, that `close_all` closed, or that
        the limit closed and no store can find again."""
        with self.lock:
            counts, sessions = Counter(self._ended), self.readers()
        for session in sessions:
            counts.update(session.stats())
        return dict(sorted(counts.items()))

    def close(self, conversation: str, *, in_order: bool = True) -> None:
        """End a conversation: close its sessions and drop it from memory. An unknown name has no effect. `in_order`:
        False if its last results may not have reached the conversation."""
        with self.lock:
            readers = self._open.pop((self._place, str(conversation)), {})
        _close(readers, in_order=in_order)

    def close_all(self) -> None:
        """End every conversation."""
        with self.lock:
            all_readers = list(self._open.values())
            self._open.clear()
        for readers in all_readers:
            self._end(readers, is_last=True)

    def conversations(self) -> list[str]:
        """Return the names of the open conversations, the most recently used last."""
        return [name for _, name in list(self._open)]

    def _lend(self, conversation: str, agent: str, session: Session) -> None:
        if self.lent is not None:
            self.lent[conversation, agent] = session
            session.reader.ends_with_result = self._is_only

    def _take_oldest(self) -> list[dict[str, Session]]:
        """Remove and return the oldest conversations until at most `most_readers` readers are left. Never remove the
        newest conversation."""
        oldest, most = list[dict[str, Session]](), self._most_readers
        while most is not None and len(self._open) > 1 and sum(map(len, self._open.values())) > most:
            oldest.append(self._open.pop(next(iter(self._open))))
        return oldest

    def _end(self, readers: dict[str, Session], *, is_last: bool) -> None:
        """Close the readers of a conversation. Keep the counters of readers that `get` cannot find in a store."""
        for agent, session in readers.items():
            if is_last or self._store is None or session.agent_id != agent:
                counts = session.stats()
                with self.lock:
                    self._ended.update(counts)
        _close(readers, in_order=is_last)


def _close(readers: dict[str, Session], *, in_order: bool) -> None:
    """Close the sessions. The session whose store the others share is the last one."""
    for session in sorted(readers.values(), key=lambda each: each.owns_store):
        session.end(in_order=in_order)
