"""The store for many machines: a Redis or Valkey server, or a cluster of them.

A transaction belongs to one session: the first that is used in it. From then on other writers of that session wait, and
no one else does. The appended events are sent in one step at the end. The server accepts them only if the session has
not changed since it was read. If a process stops for longer than `LEASE` and another one writes, its view is outdated,
and none of its events are written.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Event, Record
from readcache.core.model.unconfirmed import without_text
from readcache.log.forks import STORES, ForkLock
from readcache.log.store.codec import wanted
from readcache.log.store.protocol import Store, StoreGone, is_given_to, replaced
from readcache.log.store.redis_rows import (
    TAG_BITS,
    Row,
    Step,
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

LEASE = 2.0  # seconds; a killed writer then no longer keeps others waiting; a transaction takes 2 ms
WAIT_SECONDS = 5.0  # to wait for other writers, as in SQLite
LONGEST_PAUSE = 0.02  # seconds between two attempts while others are writing
AT_ONCE = 1000  # records of one answer: the server does nothing else in the meantime
RELIST_SECONDS = 86_400.0  # precision with which the list of sessions knows when a session was last used


def _new_tag() -> int:
    """Return a random tag for a commit. It is never 0."""
    return random.SystemRandom().randrange(1, 1 << TAG_BITS)


@dataclass
class _Uncommitted:
    """An open transaction and its changes. Each change is the record as it will be, and the step that makes it."""

    pid: int
    session_id: str | None = None  # None until one is used
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    tag: int = field(default_factory=_new_tag)
    end: tuple[int, bytes] | None = None  # the last event's number and tag; None before anything was read
    appended: list[tuple[Record, Step]] = field(default_factory=list)
    erased: dict[int, tuple[Record, Step]] = field(default_factory=dict)  # by the event's number
    drops: bool = False  # removes everything that is stored
    listed: float = 0.0  # when the session was last added to the list of sessions
    is_lost: bool = False


class RedisStore(Store):
    """A `Store` on the server that `url` names. Raise UsageError for an invalid URL. The server is first asked when
    the store is used, so a server that is down costs a session only its savings."""

    def __init__(self, url: str) -> None:
        self._server = server_at(url)
        self.path = self._server.address
        self._list = f"{self._server.prefix}:sessions"
        scripts = (READ, FIND, COMMIT, READERS, RELEASE)
        self._read, self._find, self._commit, self._list_readers, self._release = map(self._server.script, scripts)
        self._lock = ForkLock(STORES)
        self._pending: _Uncommitted | None = None
        self._closed = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`. It belongs to one session. The first read waits for other writers of it."""
        with self._open():
            pending, is_inner = self._pending or _Uncommitted(os.getpid()), self._pending is not None
            self._pending = pending
            try:
                yield
            except BaseException:
                pending.is_lost = True
                if not is_inner:
                    self._end(pending, done=False)
                raise
            if not is_inner:
                self._end(pending, done=True)

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """See `Store.append`."""
        seq = 0
        with self.transaction():
            for event in events:
                pending, end = self._enter(session_id)
                try:
                    step = step_append(agent_id, at, event)
                except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
                    raise StoreError(f"a {type(event).__name__} cannot be stored: {error}") from error
                if isinstance(event, Amended) and event.erases:
                    self._erase(pending, session_id, agent_id, event)
                seq = seq_of(end + 1 + len(pending.appended), pending.tag)
                pending.appended.append((Record(seq, agent_id, at, event), step))
        return seq

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> list[Record]:
        """See `Store.records`. Raise StoreGone for an `after` that is not from this log: the earlier log was lost."""
        with self._open():
            pending = self._pending_of(session_id)
            if pending is None or pending.end is None:
                return self._look(session_id, agent_id, after=after)
            new = [r for r, _ in pending.appended if r.seq > after and is_given_to(r, agent_id)]
            is_stored = not pending.drops and parts_of(after)[0] <= pending.end[0]
            return [*(self._look(session_id, agent_id, after=after) if is_stored else ()), *new]

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> list[Record]:
        """See `Store.records_about`."""
        with self._open():
            fields = [field_of(agent_id, what, name) for what, name in wanted(keys, digests)]
            found = self._look_up(session_id, agent_id, fields, others=True)
            pending = self._pending_of(session_id)
            return [*found, *(r for r, _ in (pending.appended if pending else ()) if is_given_to(r, agent_id))]

    def sessions(self, session_id: str | None = None) -> list[tuple[str, str, int, float]]:
        """See `Store.sessions`."""
        with self._open():
            names = self._names() if session_id is None else [session_id]
            if self._pending is not None and session_id is not None:
                self._enter(session_id)
            return [context for name in names for context in self._contexts(name)]

    def drop(self, session_id: str) -> None:
        """See `Store.drop`."""
        pending, _ = self._enter(session_id)
        pending.drops, pending.appended, pending.erased = True, [], {}

    def rewrite(self, session_id: str, changes: Sequence[tuple[Record, Event]]) -> None:
        """See `Store.rewrite`."""
        pending, _ = self._enter(session_id)
        for record, event in changes:
            number = parts_of(record.seq)[0]
            pending.erased[number] = replace(record, event=event), step_rewrite(number, record, event)

    def used_bytes(self) -> int:
        """Return how many bytes of the server's memory the sessions use; a session that the server does not report
        counts 0. Raise StoreError."""
        with self._open():
            return sum(self._ask("memory_usage", self._key(name), samples=0) or 0 for name in self._names())

    def give_back_room(self) -> None:
        """Do nothing: the server frees the memory of removed sessions itself."""

    def check(self) -> str:
        """Return the server's version, after a write and a read. Raise StoreError if they fail."""
        with self._open():
            self._ask("set", f"{self._server.prefix}:check", b"1", px=1000)
            found = self._ask("info", "server")
            return f"version {found.get('valkey_version') or found.get('redis_version', 'unknown')}"

    def kept(self) -> str:
        """Return a sentence that says for how long a session is kept."""
        return f"a session is kept for {self._server.expire_seconds / 86_400:g} days after its last call"

    def close(self) -> None:
        """See `Store.close`. The stores of this process share their connections, which close with the last store."""
        with self._lock:
            self._closed = True

    # ------------------------------------------------------------ inside

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._pending is not None and self._pending.pid != os.getpid():
                raise StoreError(f"the store {self.path} was being written when this process was forked; open it again")
            if self._closed:
                raise StoreError(f"the store {self.path} was closed; open it again")
            yield

    def _ask(self, command: str, *words: Any, **options: Any) -> Any:
        return self._server.ask(lambda client: getattr(client, command)(*words, **options))

    def _key(self, session_id: str) -> str:
        return f"{self._server.prefix}:{{s:{quoted(session_id)}}}"  # in a cluster, the text in braces picks the node

    def _keys(self, session_id: str) -> list[str]:
        return [self._key(session_id), f"{self._key(session_id)}:lock"]

    def _names(self) -> list[str]:
        """Return the names of all sessions. Remove expired sessions from the list first."""
        outlived = time.time() - self._server.expire_seconds - RELIST_SECONDS
        self._ask("zremrangebyscore", self._list, "-inf", outlived)
        return sorted(unquoted(name) for name in self._ask("zrange", self._list, 0, -1))

    def _pending_of(self, session_id: str) -> _Uncommitted | None:
        """Return the open transaction if it belongs to that session, or None. A transaction without a session belongs
        to it from now on."""
        pending = self._pending
        if pending is not None and pending.session_id is None:
            pending.session_id = session_id
        return pending if pending is not None and pending.session_id == session_id else None

    def _enter(self, session_id: str) -> tuple[_Uncommitted, int]:
        """Join the open transaction, and lock the session for it. Return the transaction and the number of the last
        event. Raise StoreError if the transaction belongs to another session."""
        pending = self._pending_of(session_id)
        if pending is None:
            raise StoreError(f"one transaction of the store {self.path} writes one session, not two; use two")
        if pending.end is None:
            self._look(session_id, None, after=0, most=0)
        assert pending.end is not None
        return pending, pending.end[0]

    def _look(self, session_id: str, agent_id: str | None, *, after: int, most: int = AT_ONCE) -> list[Record]:
        """Return the stored records. Within a transaction of the session, wait for other writers first. From then on
        they wait for this transaction."""
        pending = self._pending_of(session_id)
        reader = "*" if agent_id is None else quoted(agent_id)
        rows: list[Row] = []
        while True:
            number, tag = parts_of(after)
            words = [int(1000 * LEASE), number, tag, reader, most, _new_tag()]
            answer = self._answer(self._read, session_id, [pending.token if pending else "", *words])
            last, last_tag, upto, upto_tag, listed = answer[:5]
            rows += _rows(answer[5:])
            if pending is not None:
                pending.end, pending.listed = pending.end or (last, last_tag), float(listed or 0)
                if pending.end != (last, last_tag):
                    self._refuse(b"changed", session_id)
            if upto >= last or not most:
                return self._with_erased(session_id, read_rows(rows, agent_id))
            after = seq_of(upto, int(upto_tag or 0))

    def _look_up(
        self, session_id: str, agent_id: str, fields: Sequence[str], *, others: bool = False, calls: Sequence[str] = ()
    ) -> list[Record]:
        words = [quoted(agent_id), _new_tag(), int(others), len(fields), *fields, *map(quoted, calls)]
        answer = self._answer(self._find, session_id, words)
        return self._with_erased(session_id, read_rows(_rows(answer), agent_id))

    def _answer(self, script: Any, session_id: str, words: Sequence[Any]) -> list[Any]:
        """Return the script's answer without its verdict. Raise StoreError for any verdict except ok."""
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

    def _erase(self, pending: _Uncommitted, session_id: str, agent_id: str, amended: Amended) -> None:
        """Erase from earlier events the texts that `amended` replaces, and the names that find them."""
        for index, (record, _) in enumerate(pending.appended):
            if record.agent_id == agent_id and (old := replaced(record.event, amended)) is not None:
                left = replace(record, event=without_text(old))
                pending.appended[index] = left, step_append(agent_id, left.at, left.event)
        stored = [] if pending.drops else self._look_up(session_id, agent_id, (), calls=[amended.call_id])
        for record in stored:
            if (old := replaced(record.event, amended)) is not None:
                self.rewrite(session_id, [(record, without_text(old))])

    def _with_erased(self, session_id: str, records: list[Record]) -> list[Record]:
        pending = self._pending_of(session_id)
        if pending is None or not pending.erased:
            return records
        return [pending.erased.get(parts_of(r.seq)[0], (r, None))[0] for r in records]

    def _end(self, pending: _Uncommitted, *, done: bool) -> None:
        if pending.pid != os.getpid():  # a child that was forked within must not end its parent's transaction
            return
        self._pending = None
        if pending.session_id is None:
            return
        steps = [step for _, step in pending.erased.values()]
        steps += [["X"]] if pending.drops else []
        steps += [step for _, step in pending.appended]
        if not done or pending.is_lost or not steps:
            with suppress(StoreError):  # the lease ends by itself
                self._release(self._keys(pending.session_id)[1:], [pending.token])
            if done and pending.is_lost:
                raise StoreError(f"a part of a transaction on the store {self.path} failed, so nothing was written")
            return
        assert pending.end is not None
        if pending.appended and abs(time.time() - pending.listed) > RELIST_SECONDS:
            # Before the commit, so that the list lacks no session.
            pending.listed = time.time()
            self._ask("zadd", self._list, {quoted(pending.session_id): pending.listed})
        keep = int(1000 * self._server.expire_seconds)
        head = [pending.token, *pending.end, pending.tag, keep, repr(pending.listed)]
        self._answer(self._commit, pending.session_id, [*head, *(word for step in steps for word in step)])

    def _contexts(self, session_id: str) -> list[tuple[str, str, int, float]]:
        answer = self._answer(self._list_readers, session_id, [])
        found = []
        for agent, context in zip(answer[::2], answer[1::2], strict=True):
            count, at, *_ = context.split(b" ")
            found.append((session_id, unquoted(agent), int(count), float(at)))
        return sorted(found)


def _rows(flat: Sequence[Any]) -> list[Row]:
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
