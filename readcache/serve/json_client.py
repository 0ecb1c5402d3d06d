"""A client of the JSON protocol: one line for each request, and one line for each answer."""

from __future__ import annotations

import contextlib
import select
import threading
from collections.abc import Callable, Iterator

from readcache.serve.open_replies import OpenReplies
from readcache.serve.protocol import MOST_BYTES, Protocol, RequestError, parse, to_line

MOST_COMMANDS = 32  # running for one client at the same time
CHUNK = 65536


class JsonClient:
    """One client. `read` yields its requests, and `write` sends answers to the file descriptor `fd`."""

    def __init__(
        self, protocol: Protocol, read: Callable[[int], bytes], write: Callable[[bytes], None], fd: int
    ) -> None:
        self._protocol, self._read, self._write, self.fd = protocol, read, write, fd
        self._writing = threading.Lock()  # answers do not mix
        self._lock = threading.Lock()  # protects the two fields below
        self._stops: dict[object, Callable[[], None]] = {}
        self._commands: set[threading.Thread] = set()
        self._replies = OpenReplies()

    def serve(self) -> None:
        """Answer the client until it has sent its last request and its commands have ended.

        If the client has left, kill its commands.
        """
        with contextlib.suppress(OSError):  # the client has left, or does not read its answers
            for line in lines(self._read):
                self._take(parse(line))
                del line  # it may be large, and the next one may never come
        while running := self.running():
            if _hung_up(self.fd):
                self.kill_commands()
            running[0].join(0.1)

    def kill_commands(self) -> None:
        """Kill the running commands of this client."""
        with self._lock:
            stops = list(self._stops.values())
        for stop in stops:
            with contextlib.suppress(RuntimeError):  # the command has just ended
                stop()

    def _take(self, request: object) -> None:
        if self._protocol.is_long(request):
            self._begin(request)
        else:
            self._answer(request)

    def _begin(self, request: object) -> None:
        if len(self.running()) >= MOST_COMMANDS:
            request = RequestError(
                "busy", f"{MOST_COMMANDS} commands are already running: wait for one to end; nothing was run"
            )
        thread = threading.Thread(target=self._answer, args=(request,), daemon=True)
        with self._lock:
            self._commands.add(thread)
        thread.start()

    def running(self) -> list[threading.Thread]:
        """Return the threads of the running commands."""
        with self._lock:
            self._commands = {thread for thread in self._commands if thread.is_alive() or thread.ident is None}
            return list(self._commands)

    def _answer(self, request: object) -> None:
        answer = to_line(self._protocol.answer(request, self._cancelling, self._replies))
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


def lines(read: Callable[[int], bytes]) -> Iterator[bytearray | None]:
    """Yield the lines from `read`, except blank ones, and None for a line of more than `MOST_BYTES`. The last line may
    end without a newline. Raise OSError if reading fails."""
    line, size = bytearray(), 0  # `size` also counts bytes that are dropped because the line is too long
    while chunk := read(CHUNK):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            size += len(part)
            line += part
            if size > MOST_BYTES:
                yield None
            elif line and not line.isspace():
                yield line
            line, size = bytearray(), 0
        size += len(rest)
        line += rest
        if size > MOST_BYTES:
            line.clear()
    if size > MOST_BYTES:
        yield None
    elif line and not line.isspace():
        yield line


def _hung_up(fd: int) -> bool:
    """Return True if nobody can read the data that is written to `fd`."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
