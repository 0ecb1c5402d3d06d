"""The logs that a server keeps open between calls. They are only copies of the store."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Failed
from readcache.core.model.policy import Rules
from readcache.log.log import Log
from readcache.log.reader import Reader
from readcache.log.store import open_store
from readcache.log.store.sqlite import SqliteStore
from readcache.serve.short_client import FrameClient

MOST_LOGS = 100  # the same limit as for readers in serve/protocol.py
_ARRIVES = 0.02  # seconds; a message already in the socket is handled well within this
_APART = 0.002  # seconds; longer than a client's read takes, so that a script's next command goes first


class OpenLog:
    """A reader's log, and the clients whose outcome is still unknown."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.users = 0
        self._is_folded, self._folding = False, threading.Lock()
        self._lock = threading.Lock()
        self._waiting: dict[FrameClient, threading.Event] = {}
        self._noted: list[Failed] = []

    def reader(self, rules: Rules, own: FrameClient | None = None) -> Reader:
        """Return the reader, with the rules of the call of the client `own`.

        First wait until the reports that other clients have sent by now are logged: that they showed an answer, or that
        a command ended.
        """
        # Other clients do not wait until their reports are logged, so the next command may already have run.
        self._let_arrive(own)
        if self._is_folded:
            return Reader(self.log, rules)
        # A log that is not folded yet may be long, so the reader loads only the part that one call needs.
        policy = replace(rules.policy, any_output=False)  # `any_output` would need the whole log
        return Reader(self.log, replace(rules, policy=policy), one_call=True)

    def fold(self, path: str) -> None:
        """Prepare the log in the store at `path` for the next call. The next call never waits for this longer than for
        a judgement."""
        if self._is_folded:
            time.sleep(_APART)
            self.log.prepare_index()
            return
        if not self._folding.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(StoreError), closing(open_store(path)) as store:  # logging a call counts them
                self.log.fold(store)
                self._is_folded = True
        finally:
            self._folding.release()

    @contextlib.contextmanager
    def waiting(self, client: FrameClient) -> Iterator[None]:
        """Let other calls wait for this client while its outcome is unknown: if its answer was shown, and which files
        its command wrote."""
        with self._lock:
            event = self._waiting.setdefault(client, threading.Event())
        try:
            yield
        finally:  # the outcome is logged, so no call must wait for it
            with self._lock:
                self._waiting.pop(client, None)
            event.set()

    def take_new_failures(self) -> list[Failed]:
        """Return the failures of readcache that the store has not taken. Return each failure only once."""
        with self._lock:
            failed = self.log.unlogged()
            new = [event for event in failed if not any(event is noted for noted in self._noted)]
            self._noted = failed
        return new

    def _let_arrive(self, own: FrameClient | None) -> None:
        deadline, poll = time.monotonic() + _ARRIVES, select.poll()
        with self._lock:  # under the lock, no connection in `_waiting` is closed
            waiting = [(*each, each[0].fileno()) for each in self._waiting.items() if each[0] is not own]
        for _, _, number in waiting:
            poll.register(number, select.POLLIN)
        readable = {number for number, _ in poll.poll(0)} if waiting else set()
        for client, event, number in waiting:
            if client.has_reported or number in readable:
                event.wait(max(0.0, deadline - time.monotonic()))


class OpenLogs:
    """The most recently used logs of readers in the store at `path`. Safe to call from any thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock, self._opening = threading.Lock(), threading.Lock()
        self._open: OrderedDict[tuple[str, str], OpenLog] = OrderedDict()
        self._store: SqliteStore | None = None

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.contextmanager
    def use(self, session: str, agent: str) -> Iterator[OpenLog]:
        """Yield the log of a reader. It stays open while it is in use, and afterwards while there is room."""
        with self._lock:
            if self._store is not None and not self._store.is_there():
                self._open.clear()  # they are copies of a store that was removed
            open_log = self._open.get((session, agent))
            if open_log is None:
                open_log = OpenLog(Log(self._open_store, session, agent, time.time))
                self._open[session, agent] = open_log
            self._open.move_to_end((session, agent))
            open_log.users += 1
            self._let_go(MOST_LOGS)
        try:
            yield open_log
        finally:
            open_log.fold(self._path)
            with self._lock:
                open_log.users -= 1

    def close(self) -> None:
        """Close the logs and the store, because the server ends."""
        with self._lock:
            self._open.clear()
            if self._store is not None:
                self._store.close()

    def _open_store(self) -> SqliteStore:
        """Return the store that all logs share, so that no log waits for another's lock. Open a new one if the file was
        removed."""
        with self._opening:
            if self._store is None or not self._store.is_there():
                self._store = SqliteStore(self._path)
            return self._store

    def _let_go(self, most: int) -> None:
        for name, open_log in list(self._open.items()):
            if len(self._open) <= most:
                return
            if not open_log.users:
                del self._open[name]
