"""The client at the other end of the short way, which lives for one tool call: what it says, and what it is told. The
frames are in docs/protocol.md."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from readcache.core.model.limits import LARGEST_OUTPUT
from readcache.process.plan import Caller, Plan
from readcache.serve.frames import FIRST, BrokenFrame, read_frame, send_frame, split_text, texts

if TYPE_CHECKING:
    from socket import socket

MOST_HEAD = 4 * 1024 * 1024  # bytes; Linux takes 2 MiB of arguments and environment, and the caller's come on top
MOST_OUTPUT = LARGEST_OUTPUT + 16  # bytes; what a client holds, and a status
MOST_WORD = 4096  # bytes of a cause or a time
_PEEK = 2  # socket.MSG_PEEK


class CallHead(NamedTuple):
    """How a call begins."""

    version: str
    store: str  # "" for any
    caller: Caller


class FrameClient:
    """The client on a connection. Each method may raise OSError, BrokenFrame among them; then the connection is of no
    more use. `cause`: why the client did without us. `answered_at`: when it was sent an answer, in seconds since the
    epoch."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self.cause = ""
        self.answered_at: float | None = None

    def fileno(self) -> int:
        """The connection's number."""
        return self._connection.fileno()

    def read_head(self) -> CallHead | None:
        """How its call begins; None if it has left."""
        letter, data = self.read(MOST_HEAD)
        if not letter:
            return None
        if letter != FIRST or data[-1:] != b"\0":
            raise BrokenFrame(f"a call cannot begin with a frame {letter!r}")
        return _head(os.fsdecode(data[:-1]).split("\0"))

    def read(self, most: int) -> tuple[bytes, bytes]:
        """The letter and the data of any frame, of at most so many bytes; (b"", b"") if it has left."""
        return read_frame(self._connection, most)

    def send(self, letter: bytes, data: bytes = b"") -> None:
        """Any frame."""
        send_frame(self._connection, letter, data)

    def refuse(self, cause: str = "") -> None:
        """Do not judge its call: it is not our business, or there is a cause."""
        self.cause = cause
        self.send(b"B", texts(cause))

    def send_verdict(self, plan: Plan) -> None:
        """Say whether to buffer the output, and which names must be plain files for that."""
        paths = sorted(key for key in plan.reading.keys if key.startswith("/"))
        if plan.is_buffered:
            self.send(b"H", texts("W" if plan.reading.writes else "B", *paths))
        else:
            self.send(b"W")

    def next_letter(self) -> bytes:
        """Wait for its next frame, and leave that unread."""
        return self._connection.recv(1, _PEEK)

    def read_end(self) -> tuple[int, bytes | None] | None:
        """The status of its call, and the output to judge, None for one that was not buffered. None if it left."""
        letter, data = self.read(MOST_OUTPUT)
        if letter not in (b"E", b"O"):
            self._left(letter, data)
            return None
        status, output = split_text(data)
        return int(status), output if letter == b"O" else None

    def answer(self, text: bytes | None) -> None:
        """Send what to print; None for all of the output. Only the first answer is sent."""
        if self.answered_at is not None:
            return
        self.answered_at = time.time()
        with contextlib.suppress(BrokenPipeError):  # it did not wait; it left a message and went
            self.send(*((b"A", texts("")) if text is None else (b"T", text)))

    def read_shown(self, *, is_full: bool) -> float | None:
        """When the reader had the answer, in seconds since the epoch; None if it was not printed to its end. `is_full`:
        the answer is all of the output, which the client may have printed by itself."""
        letter, data = self.read(MOST_WORD)
        if letter == b"S":
            return min(max(self.answered_at or 0.0, float(split_text(data)[0])), time.time())
        self._left(letter, data)
        return time.time() if letter == b"F" and is_full else None

    def _left(self, letter: bytes, data: bytes) -> None:
        self.cause = split_text(data)[0] if letter in (b"N", b"F") else "gone"


def _head(fields: Sequence[str]) -> CallHead:
    take = iter(fields).__next__
    try:
        version, kind, store, cwd, stdout = (take() for _ in range(5))
        environ, words, line = (_list(take) for _ in range(3))
    except (StopIteration, RuntimeError, ValueError):
        raise BrokenFrame("a head that is shorter than it claims") from None
    entries = (entry.partition("=") for entry in environ)
    named = {name: value for name, _, value in entries}
    return CallHead(version, store, Caller(kind, words, cwd, named, not stdout, line))


def _list(take: Callable[[], str]) -> list[str]:
    return [take() for _ in range(int(take()))]
