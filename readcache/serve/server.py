"""`readcache serve`: on stdin and stdout, on a Unix socket, or started on demand.

Each client has a thread, which reads a request, answers it, and reads the next. So only the client itself waits for a
slow client. A command that a client runs has a thread of its own. On a socket, a client's first byte tells if it sends
JSON by HTTP or in lines, or uses the frame protocol.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from readcache import UsageError
from readcache.serve import http
from readcache.serve.calls import FrameServer
from readcache.serve.connections import Connections
from readcache.serve.expiry import wait_until_useless
from readcache.serve.fields import NOT_DONE, RequestError
from readcache.serve.frames import FIRST
from readcache.serve.json_client import CHUNK, JsonClient, read_line
from readcache.serve.protocol import MOST_BYTES, Protocol, to_line
from readcache.serve.socket_file import listening

MOST_CLIENTS = 64  # clients that stay connected
MOST_FRAME_CLIENTS = 256  # clients that live for one tool call, most of them while a command runs
KILL_SECONDS = 2
LATEST = 5.0  # seconds at most until the main thread sees a SIGTERM that did not wake it
_M_MMAP_THRESHOLD = -3


def answer_stdin(protocol: Protocol) -> int:
    """Answer the parent process until stdin ends or a SIGTERM arrives. Return the exit status. Raise UsageError if
    stdout is closed."""
    clients = _JsonClients(protocol)
    with _until_sigterm() as ended, _stdout_kept() as out:

        def serve() -> None:
            with contextlib.suppress(OSError), open(0, "rb", CHUNK, closefd=False) as stream:
                clients.serve(partial(read_line, stream), _writer(out), out)
            ended.set()

        threading.Thread(target=serve, daemon=True).start()
        _wait_for(ended)
        clients.kill_commands()
    return 0


def answer_socket(path: str, protocol: Protocol, frame_server: FrameServer | None) -> int:
    """Answer the clients of a socket until a SIGTERM arrives. Return the exit status.

    `frame_server`: serves the frame protocol besides JSON, or None to serve only JSON. Raise UsageError if the socket
    cannot be created.
    """
    clients = _JsonClients(protocol)

    def serve(connection: socket.socket) -> None:
        with connections.silent(connection):
            first = connection.recv(1, socket.MSG_PEEK)
        if first == FIRST:
            if frame_server is not None:
                frame_server.converse(connection, connections.silent(connection))
            return
        is_post = first == http.FIRST

        def read() -> bytes | bytearray | None:
            with connections.silent(connection):
                return http.read_post(stream, MOST_BYTES) if is_post else read_line(stream)

        write = partial(http.send_answer, connection) if is_post else connection.sendall
        with connection.makefile("rb") as stream:
            clients.serve(read, write, connection.fileno())

    connections = Connections(serve, clients.refuse, MOST_CLIENTS, clients.runs_for)
    with _until_sigterm() as ended, listening(path) as listener:
        connections.accept(listener)
        _wait_for(ended)
        clients.kill_commands()
    return 0


def answer_calls(path: str, frame_server: FrameServer, idle_seconds: float | None = None) -> int:
    """Serve the frame protocol, and hooks by HTTP, until a SIGTERM arrives. Return the exit status. Raise UsageError if
    the socket cannot be created.

    `idle_seconds`: given if the server was started on demand. Such a server also ends if no client came for this long,
    if its socket is gone, or if this package was replaced. Its caller has the lock of this `path`.
    """

    def serve(connection: socket.socket) -> None:
        frame_server.converse(connection, connections.silent(connection))

    connections = Connections(serve, lambda _: None, MOST_FRAME_CLIENTS)
    with _until_sigterm() as ended:
        with listening(path, any_length=idle_seconds is not None) as listener:
            connections.accept(listener)
            if idle_seconds is None:
                _wait_for(ended)
            else:
                wait_until_useless(ended, path, connections.idle_for, idle_seconds)
        deadline = time.monotonic() + KILL_SECONDS  # accept no more clients; answer the connected ones
        while not connections.idle_for() and time.monotonic() < deadline:
            time.sleep(0.01)
    return 0


class _JsonClients:
    """The clients of the JSON protocol."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._open: dict[int, JsonClient] = {}  # by file descriptor

    def serve(self, read: Callable[[], bytes | bytearray | None], write: Callable[[bytes], None], fd: int) -> None:
        """Serve one client until it leaves."""
        client = self._open[fd] = JsonClient(self._protocol, read, write, fd)
        try:
            client.serve()
        finally:
            del self._open[fd]

    def runs_for(self, connection: socket.socket) -> bool:
        """Return True while a command runs for this client."""
        client = self._open.get(connection.fileno())
        return client is not None and bool(client.running())

    def refuse(self, connection: socket.socket) -> None:
        """Tell a client that there is no room for it. Raise OSError if it has left."""
        error = RequestError(NOT_DONE, f"this server already has {MOST_CLIENTS} clients: try again later")
        connection.sendall(to_line(self._protocol.answer(error)))

    def kill_commands(self) -> None:
        """Kill the running commands of all clients. Wait until they have ended, for at most `KILL_SECONDS`."""
        clients = list(self._open.values())
        for client in clients:
            client.kill_commands()
        deadline = time.monotonic() + KILL_SECONDS
        for client in clients:
            for thread in client.running():
                thread.join(max(0.0, deadline - time.monotonic()))


def _return_memory() -> None:
    """Have glibc return every large block of memory when it is freed. By default, glibc soon keeps blocks of up to
    32 MB, the maximum size of a request."""
    with contextlib.suppress(Exception):  # another C library
        from _ctypes import call_function, dlopen, dlsym

        here: Any = None
        call_function(dlsym(dlopen(here, 0), "mallopt"), (_M_MMAP_THRESHOLD, 1 << 20))


@contextlib.contextmanager
def _until_sigterm() -> Iterator[threading.Event]:
    """Yield an event that is set when a SIGTERM arrives."""
    _return_memory()
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        yield ended
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait_for(ended: threading.Event) -> None:
    """Wait until `ended` is set."""
    # Wake now and then: the kernel may deliver a signal to another thread, which does not wake this one.
    while not ended.wait(LATEST):
        pass


def _writer(fd: int) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        while data:
            data = data[os.write(fd, data) :]

    return write


@contextlib.contextmanager
def _stdout_kept() -> Iterator[int]:
    """Yield a descriptor for answers only. Everything else that this process prints goes to stderr. Raise UsageError if
    stdout is closed."""
    if sys.stdout is None:  # it was closed at the start, so descriptor 1 may be any file now
        raise UsageError("stdout is closed, so answers cannot be sent: open it, or use --socket")
    out = os.dup(1)
    other = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else os.dup(2)
    os.dup2(other, 1)
    os.close(other)
    try:
        yield out
    finally:
        os.dup2(out, 1)
        os.close(out)
