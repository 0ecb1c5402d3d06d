"""The store for many machines: a Redis or Valkey server, or a cluster of them.

A transaction is of one session: the first that is used in it. From then on other writers of that session wait; no one
else does. Appended events are sent in one step at the end, and accepted only if the session is still as it was read. A
process that was stopped for longer than `LEASE` and overtaken decided on an old view; none of its events are written.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NoReturn

from readcache.log.store.codec import wanted
from readcache.log.store.protocol import HELD_SECONDS, NOTHING_LEFT, StoreGone
from readcache.log.store.redis_rows import (
    Row,
    field_of,
    parts_of,
    quoted,
    read_rows,
    seq_of,
    step_append,
    step_rewrite,
    unquoted,
)
from readcache.log.store.redis_scripts import COMMIT, FIND, READ, READERS, RELEASE, SCHEMA
from readcache.log.store.redis_server import server_at
from readcache.log.store.redis_uncommitted import (
    Step,
    Uncommitted,
    is_given_to,
    new_tag,
    require_storable,
    without_text,
)
from readcache.model.errors import StoreError
from readcache.model.events import Delivered, Event, Record, Settled

LEASE = 2.0  # seconds after which a writer that was killed no longer keeps others waiting; a transaction takes 2 ms
WAIT_SECONDS = 5.0  # that other writers are waited for, as in SQLite
LONGEST_PAUSE = 0.02  # seconds between two looks whether the others are done
AT_ONCE = 1000  # records of one answer: the server does nothing else meanwhile
INDEXES = 16  # lists of sessions, so that they spread over a cluster
RELIST_SECONDS = 86_400.0  # the lists need not know better when a session was used


class RedisStore:
    """A `Store` on the server that `url` names. UsageError for a URL without sense. The server is not asked before it
    is used, so that one that is down costs a session nothing but its savings."""

    def __init__(self, url: str) -> None:
        self._server = server_at(url)
        self.path = self._server.place
        scripts = (READ, FIND, COMMIT, READERS, RELEASE)
        self._read, self._find, self._commit, self._list_readers, self._release = map(self._server.script, scripts)
        self._lock = threading.RLock()
        self._owner = 0  # the thread that has the transaction
        self._depth = 0
        self._pending: Uncommitted | None = None
        self._closed = False
        self._is_torn = False  # by a fork amid a transaction
        _stores.add(self)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`. It is of one session; other writers of that are waited for when it is first read."""
        with self._open():
            pid, self._owner = os.getpid(), threading.get_ident()
            saved = self._pending.saved() if self._pending is not None else None
            self._depth += 1
            done = False
            try:
                yield
                done = True
            finally:
                if os.getpid() == pid:  # a child forked within must not end its parent's transaction
                    self._depth -= 1
                    if self._depth:
                        self._undo_unless(done, saved)
                    else:
                        self._end(done)

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """See `Store.append`."""
        with self.transaction():
            if not events:
                return 0
            pending = self._enter(session_id)
            if agent_id not in pending.listed:
                self._look(session_id, agent_id, after=0, most=0)
            assert pending.end is not None
            for event in events:
                require_storable(agent_id, at, event)
                if isinstance(event, Settled) and event.erases:
                    self._erase(pending, agent_id, event)
                seq = seq_of(pending.end[0] + 1 + len(pending.records), pending.tag)
                pending.records.append(Record(seq, agent_id, at, event))
            return seq

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> list[Record]:
        """See `Store.records`. StoreGone for an `after` that is not of this log: what came before it was lost since."""
        with self._open():
            if self._depth and self._pending is None:
                self._enter(session_id)
            pending = self._pending_of(session_id)
            if pending is None or pending.end is None:
                return self._look(session_id, agent_id, after=after)
            new = [r for r in pending.records if r.seq > after and is_given_to(r, agent_id)]
            is_stored = not pending.clears and parts_of(after)[0] <= pending.end[0]
            return [*(self._look(session_id, agent_id, after=after) if is_stored else ()), *new]

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> list[Record]:
        """See `Store.records_about`."""
        with self._open():
            fields = [field_of(agent_id, what, name) for what, name in wanted(keys, digests)]
            found = self._look_up(session_id, agent_id, fields, others=True)
            pending = self._pending_of(session_id)
            return [*found, *(r for r in (pending.records if pending else ()) if is_given_to(r, agent_id))]

    def sessions(self, session_id: str | None = None) -> list[tuple[str, str, int, float]]:
        """See `Store.sessions`."""
        with self._open():
            if session_id is not None:
                return self._contexts(session_id)
            names: set[str] = set()
            for number in range(INDEXES):
                key = self._index(number)
                outlived = time.time() - self._server.expire_seconds - RELIST_SECONDS
                self._ask("zremrangebyscore", key, "-inf", outlived)
                names.update(unquoted(name) for name in self._ask("zrange", key, 0, -1))
            return [context for name in sorted(names) for context in self._contexts(name)]

    def take_out(self, session_id: str, at: float) -> None:
        """See `Store.take_out`."""
        with self.transaction():
            records = self.records(session_id)
            is_held = any(r.event != NOTHING_LEFT or r.at > at - HELD_SECONDS for r in records)
            agents = dict.fromkeys(record.agent_id for record in records)
            pending = self._enter(session_id)
            if agents:
                pending.clears, pending.records, pending.erased = True, [], {}
            if is_held:
                for agent_id in agents:
                    self.append(session_id, agent_id, [NOTHING_LEFT], at)

    def used_bytes(self) -> int:
        """Bytes of the server's memory that the sessions take, as far as it tells. StoreError."""
        with self._open():
            keys = [self._key(session) for session in dict.fromkeys(context[0] for context in self.sessions())]
            return sum(self._ask("memory_usage", key, samples=0) or 0 for key in keys)

    def give_back_room(self) -> None:
        """What is taken out takes no room."""

    def check(self) -> str:
        """The server's version, when it can be read and written. StoreError."""
        with self._open():
            self._ask("set", f"{self._server.prefix}:check", b"1", px=1000)
            found = self._ask("info", "server")
            return f"version {found.get('valkey_version') or found.get('redis_version', 'unknown')}"

    def kept(self) -> str:
        """For how long, in words."""
        return f"a session is kept for {self._server.expire_seconds / 86_400:g} days after its last call"

    def close(self) -> None:
        """See `Store.close`. The connections are shared with others of this process, and close with the last."""
        with self._lock:
            self._closed = True

    # ------------------------------------------------------------ inside

    @contextmanager
    def _open(self) -> Iterator[None]:
        if self._is_torn:
            raise StoreError(f"the store {self.path} was being written when this process was forked; open it again")
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self.path} was closed; open it again")
            yield

    def _ask(self, command: str, *words: Any, **options: Any) -> Any:
        return self._server.ask(lambda client: getattr(client, command)(*words, **options))

    def _key(self, session_id: str) -> str:
        return f"{self._server.prefix}:{{s:{quoted(session_id)}}}"  # in a cluster, what the braces hold says where

    def _keys(self, session_id: str) -> list[str]:
        return [self._key(session_id), f"{self._key(session_id)}:lock"]

    def _index(self, number: int) -> str:
        return f"{self._server.prefix}:sessions:{number:x}"

    def _index_of(self, session_id: str) -> str:
        return self._index(sum(session_id.encode("utf-8", "surrogatepass")) % INDEXES)

    def _enter(self, session_id: str) -> Uncommitted:
        """The transaction under way, now of that session."""
        if self._pending is not None:
            if self._pending.session_id != session_id:
                raise StoreError(f"one transaction of the store {self.path} writes one session, not two; use two")
            return self._pending
        self._pending = Uncommitted(session_id)
        return self._pending

    def _pending_of(self, session_id: str) -> Uncommitted | None:
        return self._pending if self._pending is not None and self._pending.session_id == session_id else None

    def _look(self, session_id: str, agent_id: str | None, *, after: int, most: int = AT_ONCE) -> list[Record]:
        """What is stored. Within a transaction of the session this waits for other writers, and has them wait then."""
        pending = self._pending_of(session_id)
        reader = "*" if agent_id is None else quoted(agent_id)
        rows: list[Row] = []
        while True:
            number, tag = parts_of(after)
            words = [int(1000 * LEASE), number, tag, reader, most, new_tag()]
            answer = self._answer(self._read, session_id, [pending.token if pending else "", *words])
            last, last_tag, upto, upto_tag, listed = answer[:5]
            rows += _rows(answer[5:])
            if pending is not None:
                pending.end = pending.end or (last, last_tag)
                if pending.end != (last, last_tag):
                    self._refuse(b"changed", session_id)
                if agent_id is not None:
                    pending.listed[agent_id] = float(listed or "-inf")
            if upto >= last or not most:
                break
            after = seq_of(upto, int(upto_tag or 0))
        return self._with_erased(session_id, read_rows(rows, agent_id))

    def _look_up(
        self, session_id: str, agent_id: str, fields: Sequence[str], *, others: bool = False, calls: Sequence[str] = ()
    ) -> list[Record]:
        words = [quoted(agent_id), new_tag(), int(others), len(fields), *fields, *map(quoted, calls)]
        answer = self._answer(self._find, session_id, words)
        return self._with_erased(session_id, read_rows(_rows(answer), agent_id))

    def _answer(self, script: Any, session_id: str, words: Sequence[Any]) -> list[Any]:
        """What a script answers after its verdict. StoreError for any verdict but ok."""
        until = time.monotonic() + WAIT_SECONDS
        pause = 0.001
        while True:
            verdict, *answer = script(self._keys(session_id), words)
            if verdict != b"locked" or time.monotonic() > until:
                break
            time.sleep(random.uniform(0, pause))
            pause = min(2 * pause, LONGEST_PAUSE)
        if verdict != b"ok":
            self._refuse(verdict, session_id, *answer)
        found: list[Any] = answer
        return found

    def _refuse(self, verdict: bytes, session_id: str, *more: bytes) -> NoReturn:
        where = f"the session {session_id!r} in the store {self.path}"
        if verdict == b"gone":
            raise StoreGone(f"{where} is another one than was read before: what was shown before is shown again")
        if verdict == b"version":
            theirs = more[0].decode("utf-8", "replace")
            todo = "upgrade readcache, or name another store or prefix"
            raise StoreError(f"{where} has schema version {theirs}, this readcache knows {SCHEMA}: {todo}")
        if verdict == b"locked":
            raise StoreError(f"{where} is locked: another process has held it for {WAIT_SECONDS:g} s; try again")
        if verdict == b"changed":
            raise StoreError(f"{where} was changed by another process, so nothing was written; try again")
        raise StoreError(f"the server at {self.path} does not say what it is (INFO replication): use Redis or Valkey")

    def _erase(self, pending: Uncommitted, agent_id: str, event: Settled) -> None:
        """Erase from earlier events the texts that `event` replaces, and the names that find them."""
        for place, record in enumerate(pending.records):
            if record.agent_id == agent_id and (left := without_text(record.event, event)) is not None:
                pending.records[place] = replace(record, event=left)
        if pending.clears:
            return
        for record in self._look_up(pending.session_id, agent_id, (), calls=[event.call_id]):
            left = without_text(record.event, event)
            if left is not None:
                assert isinstance(record.event, Delivered | Settled)
                number = parts_of(record.seq)[0]
                step = step_rewrite(number, agent_id, record.event, left)
                pending.erased[number] = replace(record, event=left), step

    def _with_erased(self, session_id: str, records: list[Record]) -> list[Record]:
        pending = self._pending_of(session_id)
        if pending is None or not pending.erased:
            return records
        return [pending.erased.get(parts_of(r.seq)[0], (r, None))[0] for r in records]

    def _undo_unless(self, done: bool, saved: tuple[Any, ...] | None) -> None:
        if not done and self._pending is not None:
            self._pending.restore(saved or ([], {}, False))

    def _end(self, done: bool) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        keys = self._keys(pending.session_id)
        if not done or not (pending.records or pending.erased or pending.clears):
            with suppress(StoreError):  # the lease ends by itself
                self._release(keys[1:], [pending.token])
            return
        steps = [step for _, step in pending.erased.values()]
        if pending.clears:
            steps.append(["X", str(int(bool(pending.records)))])
        steps += [step_append(record.agent_id, record.at, record.event) for record in pending.records]
        steps += self._list(pending)
        assert pending.end is not None
        head = [pending.token, *pending.end, pending.tag, int(1000 * self._server.expire_seconds)]
        self._answer(self._commit, pending.session_id, [*head, *(word for step in steps for word in step)])

    def _list(self, pending: Uncommitted) -> list[Step]:
        """Puts the session into its list, before it is there, so that none is left out of it: the steps that say so."""
        newest = {record.agent_id: record.at for record in pending.records}
        due = {a: at for a, at in newest.items() if pending.clears or abs(at - pending.listed[a]) > RELIST_SECONDS}
        key, name = self._index_of(pending.session_id), quoted(pending.session_id)
        if due:
            self._ask("zadd", key, {name: max(time.time(), *due.values())})
        if pending.clears and not newest:
            self._ask("zrem", key, name)
        return [["Z", quoted(agent), repr(float(at))] for agent, at in due.items()]

    def _contexts(self, session_id: str) -> list[tuple[str, str, int, float]]:
        answer = self._answer(self._list_readers, session_id, [])
        found = []
        for agent, context in zip(answer[::2], answer[1::2], strict=True):
            count, at, *_ = context.split(b" ")
            found.append((session_id, unquoted(agent), int(count), float(at)))
        return sorted(found)

    def _after_fork(self) -> None:
        """In the child: drop a transaction of another thread."""
        self._server.after_fork()
        self._is_torn = self._depth > 0 and self._owner == threading.get_ident()
        if not self._is_torn:
            self._lock, self._depth, self._pending = threading.RLock(), 0, None


def _rows(flat: Sequence[Any]) -> list[Row]:
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


_stores: weakref.WeakSet[RedisStore] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
