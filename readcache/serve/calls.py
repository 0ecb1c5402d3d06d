"""The server's end of the short way: judges the calls of clients without Python, as `run` and the shims judge theirs.
What the frames are: docs/protocol.md.

    way = ShortWay("/home/u/.local/state/readcache/readcache.db")
    way.converse(connection)                   # one call; in a thread of its own

Paths are only names here: the server opens and runs nothing of the client's.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Protocol

from readcache import Reply, __version__
from readcache.disk.virtual import is_named_virtual
from readcache.log.reader import Reader
from readcache.process import failures
from readcache.process.held import rules_of
from readcache.process.plan import SINK, Plan, is_own_command, plan_command, plan_tool, planned, settings_of
from readcache.process.settings import INSIDE, Settings
from readcache.process.tidy import tidy_once_a_day
from readcache.serve.frames import read_frame, send_frame, split_text, texts
from readcache.serve.head import MOST_OUTPUT, CallHead, read_head
from readcache.serve.logs import HeldLog, HeldLogs

_MOST_WORD = 4096  # bytes of a cause or a time
_known_rules = lru_cache(maxsize=256)(rules_of)


class NotShown(Exception):
    """The client did not say that it printed our answer to its end."""


class Hooks(Protocol):
    """Answers hooks, as `ServedHooks` does."""

    calls: int  # that were answered

    def converse(self, head: CallHead, connection: socket.socket) -> None:
        """Answers one event. OSError when the connection breaks."""

    def __len__(self) -> int:
        """How many conversations are held for the next event."""

    def close(self) -> None:
        """The server ends."""


class ShortWay:
    """Judges the calls of any number of clients by the log in one store, whose absolute path is given. Safe to call
    from any thread. `hooks`: None where none are answered. `sessions`: the conversations whose calls are judged; None
    for all of them."""

    def __init__(self, store: str, hooks: Hooks | None = None, sessions: frozenset[str] | None = None) -> None:
        self._store, self._hooks, self._sessions = store, hooks, sessions
        self.logs = HeldLogs(store)
        self.causes: Counter[str] = Counter()  # why clients did without us
        self._calls, self._began = 0, time.time()

    def converse(self, connection: socket.socket, silent: AbstractContextManager[None] | None = None) -> None:
        """One connection, until it is of no more use. `silent` is entered until its head has come. OSError when it
        breaks."""
        with silent or contextlib.nullcontext():
            head = read_head(connection)
        if head is None:
            return
        if head.version != __version__ or head.store not in ("", self._store):
            self._refuse(connection, "version" if head.version != __version__ else "store")
        elif head.kind == "status":
            send_frame(connection, b"T", json.dumps(self._status()).encode())
        elif head.kind == "hook" and self._hooks is not None:
            self._hooks.converse(head, connection)
        else:
            self._serve(head, connection)

    def close(self) -> None:
        """The server ends."""
        if self._hooks is not None:
            self._hooks.close()
        self.logs.close()

    def _status(self) -> dict[str, object]:
        calls, conversations = (self._hooks.calls, len(self._hooks)) if self._hooks is not None else (0, 0)
        told = {"readcache": __version__, "store": self._store, "began": self._began, "causes": dict(self.causes)}
        return told | {"calls": self._calls + calls, "readers": len(self.logs), "conversations": conversations}

    def _serve(self, head: CallHead, connection: socket.socket) -> None:
        self._calls += 1
        settings = settings_of(head.environ, head.kind)
        if self._sessions is not None and settings.session not in self._sessions:
            self._refuse(connection, "session")
            return
        plan = planned(settings, lambda: _plan(head, settings))
        if plan is None:
            self._refuse(connection, "")
            return
        paths = sorted(key for key in plan.reading.keys if key.startswith("/"))
        otherwise = "W" if plan.reading.writes else "B"
        verdict = (b"H", texts(otherwise, *paths)) if plan.is_held else (b"W", b"")
        # Before the verdict: with it the command runs, and the next one may be here as soon as it has ended.
        with self._awaited(connection, settings) if plan.reading.writes else contextlib.nullcontext() as held:
            send_frame(connection, *verdict)
            if held is not None and connection.recv(1, socket.MSG_PEEK) == b"E":  # an output must still be judged
                held.has_arrived(connection)
            letter, data = read_frame(connection, MOST_OUTPUT)
            if letter in (b"E", b"O"):
                self._end(letter, data, connection, plan, settings)
            else:
                self._count(letter, data)

    @contextlib.contextmanager
    def _awaited(self, connection: socket.socket, settings: Settings) -> Iterator[HeldLog]:
        """Until it is logged what a command wrote, the next one waits for that."""
        with self.logs.use(settings.session, settings.agent) as held, held.waiting(connection):
            yield held

    def _end(self, letter: bytes, data: bytes, connection: socket.socket, plan: Plan, settings: Settings) -> None:
        status, output = split_text(data)
        with self.logs.use(settings.session, settings.agent) as held:
            try:
                if letter == b"O":
                    self._judge(connection, plan, int(status), output, settings, held)
                else:
                    _reader(held, settings, connection).note_writes(plan.call("", int(status)))
                    held.is_logged(connection)
            except (NotShown, OSError):
                pass  # what was not printed is not a source
            except Exception as error:
                failures.note_error(settings.session, error)
            finally:
                _note_failures(held, settings)
        tidy_once_a_day(settings)

    def _judge(
        self, connection: socket.socket, plan: Plan, status: int, output: bytes, settings: Settings, held: HeldLog
    ) -> None:
        sent: float | None = None

        def send(text: bytes | None) -> None:
            nonlocal sent
            sent = time.time()
            with contextlib.suppress(BrokenPipeError):  # the client did not wait; it left a message and went
                send_frame(connection, *((b"A", texts("")) if text is None else (b"T", text)))

        def announce() -> None:
            with contextlib.suppress(OSError):  # what comes next finds it, too
                send(None)

        def show(reply: Reply) -> float:
            is_full = reply.outcome.value == "full"
            if sent is None:
                send(None if is_full else reply.text.encode("utf-8", "replace"))
            return self._hear(connection, sent or 0.0, held, is_full=is_full)

        try:
            if (text := plan.text(output)) is not None:
                call, reader = plan.call(text, status), _reader(held, settings, connection)
                with held.waiting(connection):
                    reader.answer(call, show, began=settings.began, announce=announce)
        finally:
            if sent is None:  # it cannot be judged, or we failed
                send(None)
                self._hear(connection, time.time(), held, is_full=True)

    def _hear(self, connection: socket.socket, sent: float, held: HeldLog, *, is_full: bool) -> float:
        """When the reader had an answer. `is_full`: the answer is all of the output. NotShown, OSError."""
        connection.recv(1, socket.MSG_PEEK)
        held.has_arrived(connection)
        letter, data = read_frame(connection, _MOST_WORD)
        if letter == b"S":
            return min(max(sent, float(split_text(data)[0])), time.time())
        self._count(letter, data)
        if letter == b"F" and is_full:
            return time.time()
        raise NotShown

    def _refuse(self, connection: socket.socket, cause: str) -> None:
        if cause:
            self.causes[cause] += 1
        send_frame(connection, b"B", texts(cause))

    def _count(self, letter: bytes, data: bytes) -> None:
        self.causes[split_text(data)[0] if letter in (b"N", b"F") else "gone"] += 1


def _plan(head: CallHead, settings: Settings) -> Plan | None:
    """None for what is none of our business."""
    if head.kind == "tool":
        sink = head.environ[SINK]
        if head.caller and not is_own_command(sink, head.caller):
            return None
        return plan_tool(head.words, head.cwd, settings, sink, is_virtual=is_named_virtual)
    if head.kind not in ("command", "run"):
        return None
    (command,) = head.words
    return plan_command(
        command,
        head.cwd,
        settings,
        inside=head.environ.get(INSIDE, ""),
        can_hold=lambda: not head.stdout,
        is_virtual=is_named_virtual,
    )


def _reader(held: HeldLog, settings: Settings, connection: socket.socket) -> Reader:
    named = settings._replace(agent="", store="", batch="", began=0.0)  # what no rule depends on
    return held.reader(_known_rules(named), connection)


def _note_failures(held: HeldLog, settings: Settings) -> None:
    """Those that the store has not taken yet; when it does, they are in the log as well."""
    for failed in held.take_new_failures():
        failures.note(settings.session, failed.cause, failed.detail)
