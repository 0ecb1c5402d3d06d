"""The client at the other end of the frame protocol: its frames, and the answers to them. It lives for one tool call.

The frames are in docs/protocol.md.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from readcache.core.model.limits import LARGEST_OUTPUT
from readcache.process.plan import Caller, Plan
from readcache.serve.frames import FIRST, BrokenFrame, read_frame, send_frame, split_text, texts

if TYPE_CHECKING:
    from socket import socket

MOST_HEAD = 4 * 1024 * 1024  # bytes; Linux allows 2 MiB of arguments and environment, and the caller's are added
MOST_OUTPUT = LARGEST_OUTPUT + 16  # bytes; the output that a client buffers, and a status
MOST_WORD = 4096  # bytes of a cause or a time
_PEEK = 2  # socket.MSG_PEEK


CallHead = tuple[str, str, Caller]  # version, store ("" for any) and caller


class FrameClient:
    """The client on a connection.

    Each method may raise OSError, also as BrokenFrame. Afterwards the connection is useless. `cause`: why the client
    continued without readcache, or "". `is_answered`: an answer was sent. `has_reported`: the client's last frame has
    arrived, which says that it showed the answer, or that a command without output to judge has ended.
    """

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self.cause = ""
        self.is_answered = self.has_reported = False

    def fileno(self) -> int:
        """Return the file descriptor of the connection."""
        return self._connection.fileno()

    def read_head(self) -> CallHead | None:
        """Return (version, store, caller) of the client's call, or None if the client has left."""
        letter, data = self.read(MOST_HEAD)
        if not letter:
            return None
        if letter != FIRST or data[-1:] != b"\0":
            raise BrokenFrame(f"a call cannot begin with a frame {letter!r}")
        return _head(os.fsdecode(data[:-1]).split("\0"))

    def read(self, most: int) -> tuple[bytes, bytes]:
        """Return the letter and the data of the next frame, or (b"", b"") if the client has left. `most`: the maximum
        length of the data, in bytes."""
        return read_frame(self._connection, most)

    def send(self, letter: bytes, data: bytes = b"") -> None:
        """Send a frame."""
        send_frame(self._connection, letter, data)

    def refuse(self, cause: str = "") -> None:
        """Tell the client that its call is not judged. `cause`: the reason, or "" if readcache does not apply to the
        call."""
        self.cause = cause
        self.send(b"B", texts(cause))

    def send_verdict(self, plan: Plan) -> None:
        """Tell the client to buffer the output or not, and which paths must be plain files for buffering."""
        paths = sorted(key for key in plan.reading.keys if key.startswith("/"))
        if plan.is_buffered:
            self.send(b"H", texts("W" if plan.reading.writes else "B", *paths))
        else:
            self.send(b"W")

    def read_end(self) -> tuple[int, bytes | None] | None:
        """Return the status of the client's call and the output to judge. The output is None if it was not buffered.
        Return None if the client has left."""
        # Note it before the read: afterwards, the connection no longer shows that something has arrived.
        self.has_reported = self._connection.recv(1, _PEEK) == b"E"
        letter, data = self.read(MOST_OUTPUT)
        if letter not in (b"E", b"O"):
            self._left(letter, data)
            return None
        status, output = split_text(data)
        return int(status), output if letter == b"O" else None

    def show(self, text: bytes | None) -> float | None:
        """Have the client print the text, or the whole output if `text` is None.

        Return the time when the reader had it, in seconds since the epoch. Return None if it was not printed to its
        end.
        """
        self.is_answered, answered_at = True, time.time()
        with contextlib.suppress(BrokenPipeError):  # it did not wait: it sent its last frame and left
            self.send(*((b"A", texts("")) if text is None else (b"T", text)))
        self._connection.recv(1, _PEEK)
        self.has_reported = True
        letter, data = self.read(MOST_WORD)
        if letter == b"S":
            return min(max(answered_at, float(split_text(data)[0])), time.time())
        self._left(letter, data)
        return time.time() if letter == b"F" and text is None else None  # it printed the output by itself

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
    return version, store, Caller(kind, words, cwd, named, not stdout, line)


def _list(take: Callable[[], str]) -> list[str]:
    return [take() for _ in range(int(take()))]
