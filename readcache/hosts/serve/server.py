"""`readcache serve`: the protocol on stdin and stdout, or on a Unix socket.

Each client has a thread, which reads a request, answers it, and reads the next; so that a slow client waits for itself
alone. A command that a client runs has a thread of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator

from readcache import Policy, Sessions, UsageError
from readcache.hosts.serve.protocol import MOST_BYTES, Protocol, RequestError, parse, to_line
from readcache.hosts.serve.socket_file import listening

MOST_CLIENTS = 64
MOST_COMMANDS = 32  # of one client at once
SEND_SECONDS = 30  # a client that takes nothing for so long is given up
KILL_SECONDS = 2
CHUNK = 65536


def answer_clients(*, socket_path: str | None, store: str | None, policy: Policy, may_run: bool, host: str) -> int:
    """Answers until stdin ends, or, on a socket, until a SIGTERM; the exit status. UsageError for a socket that cannot
    be. `host`: the harness that asks. `store`: None is memory. `may_run`: `run` and `read` are offered, and the files
    are those of this machine."""
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    # Text that a client sends says nothing of files here: without `may_run` none is ever opened.
    local = None if may_run else False
    protocol = Protocol(Sessions(os.getcwd(), store=store, policy=policy, local=local, host=host), may_run=may_run)
    clients = _Clients(protocol)
    try:
        if socket_path is None:
            with _stdout_kept() as out:
                clients.start(lambda size: os.read(0, size), _writer(out), out, ended.set)
                ended.wait()
                clients.end()
        else:
            with listening(socket_path) as listener:
                threading.Thread(target=_accept, args=(listener, clients), daemon=True).start()
                ended.wait()
                clients.end()
    finally:
        protocol.close()
        signal.signal(signal.SIGTERM, before)
    return 0


class _Clients:
    """Those that are connected."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._lock = threading.Lock()
        self._open: set[_Client] = set()

    def start(
        self, read: Callable[[int], bytes], write: Callable[[bytes], None], fd: int, done: Callable[[], object]
    ) -> bool:
        """Serves a client in a thread, `done` when it has gone; False when there are too many."""
        client = _Client(self.protocol, read, write, fd)
        with self._lock:
            if len(self._open) >= MOST_CLIENTS:
                return False
            self._open.add(client)

        def run() -> None:
            try:
                client.serve()
            finally:
                with self._lock:
                    self._open.discard(client)
                done()

        threading.Thread(target=run, daemon=True).start()
        return True

    def end(self) -> None:
        """Kills what runs for anybody, and waits a moment until that is done."""
        with self._lock:
            clients = list(self._open)
        for client in clients:
            client.kill_commands()
        deadline = time.monotonic() + KILL_SECONDS
        for client in clients:
            for thread in client.running():
                thread.join(max(0.0, deadline - time.monotonic()))


class _Client:
    """One client: requests from `read`, answers to `write`, whose file descriptor is `fd`."""

    def __init__(
        self, protocol: Protocol, read: Callable[[int], bytes], write: Callable[[bytes], None], fd: int
    ) -> None:
        self._protocol, self._read, self._write, self._fd = protocol, read, write, fd
        self._writing = threading.Lock()  # answers do not mix
        self._lock = threading.Lock()  # of what follows
        self._stops: dict[object, Callable[[], None]] = {}
        self._commands: set[threading.Thread] = set()

    def serve(self) -> None:
        """Until the client has sent its last request, and what it runs has ended, or it has gone."""
        with contextlib.suppress(OSError):  # it has gone, or takes nothing
            for line in lines(self._read):
                request = parse(line)
                if self._protocol.is_long(request):
                    self._begin(request)
                else:
                    self._answer(request)
        while running := self.running():
            if _hung_up(self._fd):
                self.kill_commands()
            running[0].join(0.1)

    def kill_commands(self) -> None:
        """Kills the commands that it runs."""
        with self._lock:
            stops = list(self._stops.values())
        for stop in stops:
            with contextlib.suppress(RuntimeError):  # it ended just now
                stop()

    def _begin(self, request: object) -> None:
        if len(self.running()) >= MOST_COMMANDS:
            request = RequestError("busy", f"{MOST_COMMANDS} commands run already: wait for one; nothing was run")
        thread = threading.Thread(target=self._answer, args=(request,), daemon=True)
        with self._lock:
            self._commands.add(thread)
        thread.start()

    def running(self) -> list[threading.Thread]:
        """The threads of its commands."""
        with self._lock:
            self._commands = {thread for thread in self._commands if thread.is_alive() or thread.ident is None}
            return list(self._commands)

    def _answer(self, request: object) -> None:
        answer = to_line(self._protocol.answer(request, self._cancelling))
        with contextlib.suppress(OSError), self._writing:
            self._write(answer)

    @contextlib.contextmanager
    def _cancelling(self, stop: Callable[[], None]) -> Iterator[None]:
        key = object()
        with self._lock:
            self._stops[key] = stop
        try:
            yield
        finally:
            with self._lock:
                del self._stops[key]


def lines(read: Callable[[int], bytes]) -> Iterator[bytes | None]:
    """The lines that come, without blank ones; None for one of more than `MOST_BYTES`. The last may end without a
    newline. OSError."""
    parts: list[bytes] = []
    size = 0
    while chunk := read(CHUNK):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            size += len(part)
            whole = b"".join([*parts, part]) if size <= MOST_BYTES else None
            parts, size = [], 0
            if whole is None or whole.strip():
                yield whole
        size += len(rest)
        parts = [*parts, rest] if size <= MOST_BYTES else []
    if size > MOST_BYTES:
        yield None
    elif last := b"".join(parts).strip():
        yield last


def _accept(listener: socket.socket, clients: _Clients) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # closed: the server ends
            return
        if not _is_ours(connection):
            connection.close()
            continue
        # Only sending has a deadline: a client may be silent for as long as it likes.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        if not clients.start(connection.recv, connection.sendall, connection.fileno(), connection.close):
            error = RequestError("busy", f"this server has {MOST_CLIENTS} clients already: try again later")
            with contextlib.suppress(OSError):
                connection.sendall(to_line(clients.protocol.answer(error)))
            connection.close()


def _is_ours(connection: socket.socket) -> bool:
    """False for another user's process, where the system tells; the socket's mode keeps those out everywhere."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return user in (os.geteuid(), 0)


def _hung_up(fd: int) -> bool:
    """True when nobody can read what is written there."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))


def _writer(fd: int) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        while data:
            data = data[os.write(fd, data) :]

    return write


@contextlib.contextmanager
def _stdout_kept() -> Iterator[int]:
    """A descriptor for answers alone: whatever else is printed by this process goes to stderr. UsageError."""
    if sys.stdout is None:  # it was closed when we were started, and 1 may be anything now
        raise UsageError("stdout is closed: nobody could read an answer; open it, or give --socket")
    out = os.dup(1)
    other = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else os.dup(2)
    os.dup2(other, 1)
    os.close(other)
    try:
        yield out
    finally:
        os.dup2(out, 1)
        os.close(out)
