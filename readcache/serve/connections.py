"""The clients on one socket: a thread for each, up to a limit, and only this user's. At the limit, the client that has
asked nothing for longest makes room for the next.

A thread that has served a client takes the next one. It starts another thread only if none is waiting, because a start
takes as long as an answer.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from readcache.serve.address import is_ours

SPARE = 4  # threads that wait for clients: as many as ask at once where a few agents work
PAUSE = 0.05  # seconds
SEND_SECONDS = 30  # a client that takes nothing for so long is given up
Serve = Callable[[socket.socket], None]


class Connections:
    """`serve` gets each connection, in a thread of its own, and `refuse` those beyond the limit. Both may raise OSError
    when the client has gone. `most`: how many there may be at once. `works_for`: False if a connection may be closed
    while `silent` is entered for it."""

    def __init__(
        self, serve: Serve, refuse: Serve, most: int, works_for: Callable[[socket.socket], bool] = lambda _: False
    ) -> None:
        self._serve, self._refuse, self._most, self._works_for = serve, refuse, most, works_for
        self._lock = threading.Lock()
        self._silent: dict[socket.socket, None] = {}  # longest first
        self._open = self._waiting = 0
        self._last_ended = time.monotonic()

    def idle_for(self) -> float:
        """Seconds since the last client went; 0 while there is one."""
        with self._lock:
            return 0.0 if self._open else time.monotonic() - self._last_ended

    @contextlib.contextmanager
    def silent(self, connection: socket.socket) -> Iterator[None]:
        """While its next request has not come. It may end meanwhile, to make room; what was sent before that is still
        received."""
        with self._lock:
            self._silent[connection] = None
        try:
            yield
        finally:
            with self._lock:
                self._silent.pop(connection, None)

    def _makes_room(self) -> bool:
        """Ends the connection that has been silent longest; False if there is none."""
        with self._lock:
            for connection in self._silent:
                if not self._works_for(connection):
                    del self._silent[connection]
                    with contextlib.suppress(OSError):  # it has just gone
                        connection.shutdown(socket.SHUT_RD)
                    return True
        return False

    def accept(self, listener: socket.socket) -> None:
        """Has those that come served, until the caller closes the listener."""
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
                time.sleep(PAUSE)  # no more files may be open: some client will end
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
