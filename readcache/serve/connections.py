"""The clients on one socket: a thread for each, up to a limit, and only for clients of this user. At the limit, the
client that has been silent longest makes room for the next.

A thread that has served a client takes the next one. It starts another thread only if none is waiting, because starting
a thread takes as long as an answer.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from readcache.serve.address import is_ours

SPARE = 4  # threads that wait for clients: enough for the parallel requests of a few agents
PAUSE = 0.05  # seconds
SEND_SECONDS = 30  # the server gives up a client that reads nothing for this long
Serve = Callable[[socket.socket], None]


class Connections:
    """Serve the connections of a socket, each in a thread of its own.

    `serve` gets each connection, and `refuse` each one for which no other makes room. Both may raise OSError if the
    client has left.
    `most`: the maximum number of open connections. `works_for`: returns False if a connection may be closed while
    `silent` is entered for it.
    """

    def __init__(
        self, serve: Serve, refuse: Serve, most: int, works_for: Callable[[socket.socket], bool] = lambda _: False
    ) -> None:
        self._serve, self._refuse, self._most, self._works_for = serve, refuse, most, works_for
        self._lock = threading.Lock()
        self._silent: dict[socket.socket, None] = {}  # longest first
        self._open = self._waiting = 0
        self._last_ended = time.monotonic()

    def idle_for(self) -> float:
        """Return the seconds since the last client left, or 0 while there is a client."""
        with self._lock:
            return 0.0 if self._open else time.monotonic() - self._last_ended

    @contextlib.contextmanager
    def silent(self, connection: socket.socket) -> Iterator[None]:
        """Mark a connection as silent until its next request arrives. In the meantime it may be shut down to make room.
        Data that was sent before that is still received."""
        with self._lock:
            self._silent[connection] = None
        try:
            yield
        finally:
            with self._lock:
                self._silent.pop(connection, None)

    def _makes_room(self) -> bool:
        """Shut down the connection that has been silent longest. Return False if no connection can make room."""
        with self._lock:
            for connection in self._silent:
                if not self._works_for(connection):
                    del self._silent[connection]
                    with contextlib.suppress(OSError):  # the client has just left
                        connection.shutdown(socket.SHUT_RD)
                    return True
        return False

    def accept(self, listener: socket.socket) -> None:
        """Serve new connections in other threads until the caller closes the listener."""
        with self._lock:
            self._waiting += 1
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                if listener.fileno() < 0:  # closed: the server ends
                    return
                time.sleep(PAUSE)  # too many open files: wait until some client ends
                continue
            with self._lock:
                self._open += 1
                has_room = self._open <= self._most
                self._waiting -= 1
                is_last = not self._waiting
            if is_last:
                self.accept(listener)
            try:
                self._run(connection, self._serve if has_room or self._makes_room() else self._refuse)
            finally:
                with self._lock:
                    self._open -= 1
                    self._last_ended = time.monotonic()
            with self._lock:
                if self._waiting >= SPARE:
                    return
                self._waiting += 1

    def _run(self, connection: socket.socket, serve: Serve) -> None:
        with connection, contextlib.suppress(OSError):
            if is_ours(connection):
                # Only sending has a deadline: a client may be silent for as long as it likes.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
                serve(connection)
