"""Answer one client that sends JSON."""

from __future__ import annotations

import contextlib
import select
import threading
from collections.abc import Callable
from typing import BinaryIO

from readcache.serve.fields import NOT_DONE, RequestError
from readcache.serve.open_replies import OpenReplies
from readcache.serve.protocol import MOST_BYTES, Protocol, parse, to_line

MOST_COMMANDS = 32  # running for one client at the same time
CHUNK = 65536


class JsonClient:
    """One client. `read` returns the data of its next request, b"" after the last one, or None for a request that is
    too long. `write` sends an answer, or b"" for no answer, to the file descriptor `fd`. Both may raise OSError."""

    def __init__(
        self, protocol: Protocol, read: Callable[[], bytes | bytearray | None], write: Callable[[bytes], None], fd: int
    ) -> None:
        self._protocol, self._read, self._write, self._fd = protocol, read, write, fd
        self._writing = threading.Lock()  # answers do not mix
        self._lock = threading.Lock()  # protects the field below
        self._commands: dict[threading.Thread, Callable[[], object]] = {}  # with the function that kills each
        self._replies = OpenReplies()

    def serve(self) -> None:
        """Answer the client until it has sent its last request and its commands have ended. If it leaves, kill them."""
        with contextlib.suppress(OSError):  # it has left, or reads nothing
            while (data := self._read()) != b"":
                request = parse(data)
                (self._begin if self._protocol.is_long(request) else self._answer)(request)
                del data, request  # they may be large, and the next one may never come
        while running := self.running():
            if _hung_up(self._fd):
                self.kill_commands()
            running[0].join(0.1)

    def kill_commands(self) -> None:
        """Kill the running commands of this client."""
        with self._lock:
            stops = list(self._commands.values())
        for stop in stops:
            with contextlib.suppress(RuntimeError):  # the command has ended
                stop()

    def _begin(self, request: object) -> None:
        if len(self.running()) >= MOST_COMMANDS:
            request = RequestError(
                NOT_DONE, f"{MOST_COMMANDS} commands are already running: wait for one to end; nothing was run"
            )
        thread = threading.Thread(target=self._answer, args=(request,), daemon=True)
        with self._lock:
            self._commands[thread] = lambda: None  # nothing runs yet
        thread.start()

    def running(self) -> list[threading.Thread]:
        """Return the threads of the running commands."""
        with self._lock:
            self._commands = {t: stop for t, stop in self._commands.items() if t.is_alive() or t.ident is None}
            return list(self._commands)

    def _answer(self, request: object) -> None:
        answer = to_line(self._protocol.answer(request, self._can_stop, self._replies))
        with contextlib.suppress(OSError), self._writing:
            self._write(answer)

    def _can_stop(self, stop: Callable[[], object]) -> None:
        with self._lock:
            self._commands[threading.current_thread()] = stop


def read_line(stream: BinaryIO) -> bytearray | None:
    """Return the next line that is not blank, b"" at the end, or None for a line of more than `MOST_BYTES`. The last
    line may end without a newline. Raise OSError."""
    line = bytearray()  # one block, whose memory is returned when it is freed
    while not line.endswith(b"\n") and (part := stream.readline(CHUNK)):
        line += part if len(line) <= MOST_BYTES else part[-1:]
        if line.isspace():
            line.clear()
    return line if len(line) - line.endswith(b"\n") <= MOST_BYTES else None


def _hung_up(fd: int) -> bool:
    """Return True if nobody can read the data that is written to `fd`."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
