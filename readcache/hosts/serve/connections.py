"""The clients on one socket: a thread for each, no more of them than there is room for, and none of another user."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from readcache.hosts.serve.place import is_ours

SEND_SECONDS = 30  # a client that takes nothing for so long is given up
Serve = Callable[[socket.socket], None]


class Connections:
    """`serve` is given each connection, in a thread of its own, and `refuse` those for which there is no room: both may
    raise OSError when the client has gone. `most`: how many there may be at once."""

    def __init__(self, serve: Serve, refuse: Serve, most: int) -> None:
        self._serve, self._refuse, self._most = serve, refuse, most
        self._lock = threading.Lock()
        self._open = 0
        self._last_ended = time.monotonic()

    @contextlib.contextmanager
    def accepted(self, listener: socket.socket) -> Iterator[None]:
        """While it lasts, those that come are served; the listener is closed by whoever opened it."""
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        yield

    def idle_for(self) -> float:
        """Seconds since the last client went; 0 while there is one."""
        with self._lock:
            return 0.0 if self._open else time.monotonic() - self._last_ended

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # closed: the server ends
                return
            if not is_ours(connection):
                connection.close()
                continue
            # Only sending has a deadline: a client may be silent for as long as it likes.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
            with self._lock:
                has_room = self._open < self._most
                self._open += has_room
            if has_room:
                threading.Thread(target=self._run, args=(connection,), daemon=True).start()
            else:
                with contextlib.suppress(OSError):
                    self._refuse(connection)
                connection.close()

    def _run(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                self._serve(connection)
        finally:
            connection.close()
            with self._lock:
                self._open -= 1
                self._last_ended = time.monotonic()
