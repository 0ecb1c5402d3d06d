"""The server's end of the short way: calls of clients that have no Python of their own are judged as `run` and the
shims judge theirs. What the frames are: hosts/protocol.md.

    way = ShortWay("/home/u/.local/state/readcache/readcache.db")
    way.converse(connection)                   # one call; in a thread of its own

Paths are names here: nothing of the client's is opened or run.
"""

from __future__ import annotations

import contextlib
import shlex
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from readcache import Reply, __version__
from readcache.disk.virtual import is_named_virtual
from readcache.judging import marker
from readcache.log.reader import Reader
from readcache.model.call import Call
from readcache.model.claims import Reading
from readcache.model.policy import Rules
from readcache.process import failures
from readcache.process.held import RUN, chosen_policy, held_call
from readcache.process.settings import INSIDE, Settings, clip_sizes, read_settings
from readcache.process.tidy import tidy_once_a_day
from readcache.process.tool_call import SHIMS, SINK, batch_of, is_own_command, read_tool
from readcache.serve.frames import read_frame, send_frame, split_text, texts
from readcache.serve.head import MOST_OUTPUT, CallHead, read_head
from readcache.serve.logs import HeldLog, HeldLogs
from readcache.shell.prefilter import may_matter
from readcache.shell.read import read_command

Serve = Callable[[CallHead, socket.socket], None]
_MOST_WORD = 4096  # bytes of a cause or a time


class NotShown(Exception):
    """The client did not say that it printed our answer to its end."""


class _Plan(NamedTuple):
    """What is done about a call that is some business of ours."""

    is_held: bool
    reading: Reading  # as it is believed before it has run
    is_text: bool  # output that is no text is not judged
    make_call: Callable[[str, int], Call]


class ShortWay:
    """Judges the calls of any number of clients by the log in one store, whose absolute path is given. Safe to call
    from any thread. `kinds`: what serves the heads of other kinds."""

    def __init__(self, store: str, kinds: Mapping[str, Serve] | None = None) -> None:
        self._store = store
        self._kinds = dict(kinds or {})
        self.logs = HeldLogs(store)
        self.causes: Counter[str] = Counter()  # why clients did without us
        self.calls = 0

    def converse(self, connection: socket.socket) -> None:
        """One connection, until it is of no more use. OSError when it breaks."""
        head = read_head(connection)
        if head is None:
            return
        if head.version != __version__ or head.store not in ("", self._store):
            self._refuse(connection, "version" if head.version != __version__ else "store")
        elif head.kind in self._kinds:
            self._kinds[head.kind](head, connection)
        else:
            self._serve(head, connection)

    def close(self) -> None:
        """Closes the logs."""
        self.logs.close()

    def _serve(self, head: CallHead, connection: socket.socket) -> None:
        self.calls += 1
        settings = read_settings(head.environ)
        try:
            plan = _plan(head, settings)
        except Exception as error:
            failures.note_error(settings.session, error)
            plan = None
        if plan is None:
            self._refuse(connection, "")
            return
        if head.kind != "run" and settings.mode == "on" and not head.environ.get("READCACHE"):
            settings = settings._replace(mode="advise")  # nobody says that compactions are reported
        settings = settings._replace(host=settings.host or (SHIMS if head.kind == "tool" else RUN))
        paths = sorted(key for key in plan.reading.keys if key.startswith("/"))
        otherwise = "W" if plan.reading.writes else "B"
        send_frame(connection, *((b"H", texts(otherwise, *paths)) if plan.is_held else (b"W", b"")))
        with self._awaited(connection, settings) if plan.reading.writes else contextlib.nullcontext():
            letter, data = read_frame(connection, MOST_OUTPUT)
            if letter in (b"E", b"O"):
                self._end(letter, data, connection, plan, settings)
            else:
                self._count(letter, data)

    @contextlib.contextmanager
    def _awaited(self, connection: socket.socket, settings: Settings) -> Iterator[None]:
        """Until it is logged what a command wrote: the next one may be here before that, and waits for it."""
        with self.logs.use(settings.session, settings.agent) as held, held.waiting(connection):
            if connection.recv(1, socket.MSG_PEEK) == b"E":  # an output has still to be judged: nobody waits for it
                held.has_arrived(connection)
            yield

    def _end(self, letter: bytes, data: bytes, connection: socket.socket, plan: _Plan, settings: Settings) -> None:
        status, output = split_text(data)
        with self.logs.use(settings.session, settings.agent) as held:
            try:
                if letter == b"O":
                    self._judge(connection, plan, int(status), output, settings, held)
                else:
                    _reader(held, settings, connection).note_writes(plan.make_call("", int(status)))
                    held.is_logged(connection)
            except (NotShown, OSError):
                pass  # what was not printed is no source
            except Exception as error:
                failures.note_error(settings.session, error)
            finally:
                _note_failures(held, settings)
        tidy_once_a_day(settings)

    def _judge(
        self, connection: socket.socket, plan: _Plan, status: int, output: bytes, settings: Settings, held: HeldLog
    ) -> None:
        sent: float | None = None

        def send(text: bytes | None) -> None:
            nonlocal sent
            sent = time.time()
            with contextlib.suppress(BrokenPipeError):  # who did not wait is gone, and has left word
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
            text = output.decode("utf-8", "replace")
            if plan.is_text or "\ufffd" not in text or text.encode() == output:
                call, reader = plan.make_call(text, status), _reader(held, settings, connection)
                with held.waiting(connection):
                    reader.answer(call, show, began=settings.began, announce=announce)
        finally:
            if sent is None:  # it cannot be judged, or we failed
                send(None)
                self._hear(connection, time.time(), held, is_full=True)

    def _hear(self, connection: socket.socket, sent: float, held: HeldLog, *, is_full: bool) -> float:
        """When an answer, `is_full` for all of the output, was before the reader. NotShown, OSError."""
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


def _plan(head: CallHead, settings: Settings) -> _Plan | None:
    """None for what is no business of ours."""
    if not settings.acts:
        return None
    if head.kind == "tool":
        return _plan_tool(head, settings)
    return _plan_command(head, settings) if head.kind in ("command", "run") else None


def _plan_tool(head: CallHead, settings: Settings) -> _Plan | None:
    """As readcache/cli/shim_run.py does."""
    sink, (tool, *args) = head.environ[SINK], head.words
    # Of a harness that cuts outputs only the whole-command way knows what is cut.
    if settings.clip or (head.caller and not is_own_command(sink, head.caller)):
        return None
    reading = read_tool(tool, args, head.cwd)
    if reading is None or any(map(is_named_virtual, reading.keys)):
        return None
    command, batch = shlex.join(head.words), settings.batch or batch_of(sink)
    return _Plan(
        True,
        reading,
        False,
        lambda text, status: held_call(command, head.cwd, text, reading, status, batch=batch),
    )


def _plan_command(head: CallHead, settings: Settings) -> _Plan | None:
    """As readcache/cli/run.py does."""
    (command,) = head.words
    if head.environ.get(INSIDE) == settings.context or not may_matter(command):
        return None
    clip_sizes(settings.clip)  # what cannot be understood here leaves nothing to be relied on
    reading = read_command(command, head.cwd, None)
    is_held = bool(reading.keys) and not head.stdout and not any(map(is_named_virtual, reading.keys))
    if not is_held and not reading.writes:
        return None

    def make_call(text: str, status: int) -> Call:
        read = read_command(command, head.cwd, status)
        return held_call(command, head.cwd, text, read, status, batch=settings.batch)

    return _Plan(is_held, reading, True, make_call)


def _reader(held: HeldLog, settings: Settings, connection: socket.socket) -> Reader:
    named = settings._replace(agent="", store="", batch="", began=0.0)  # what no rule depends on
    return held.reader(_rules(named), connection)


@lru_cache(maxsize=256)
def _rules(settings: Settings) -> Rules:
    return Rules(chosen_policy(settings), marker.tag(settings.session), settings.host)


def _note_failures(held: HeldLog, settings: Settings) -> None:
    """Those that the store has not taken yet; when it does, they are in the log as well."""
    for failed in held.take_new_failures():
        failures.note(settings.session, failed.cause, failed.detail)
