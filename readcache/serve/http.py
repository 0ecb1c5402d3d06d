"""HTTP on the socket of `readcache serve`, for clients that have it already.

The body of a POST is a request in JSON. To the server that comes by itself, it is a hook's event: one POST a
connection, whose body is a line of JSON that says for whom, as the head of the short way does, and the event. See
docs/protocol.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from readcache import __version__
from readcache.process.plan import Caller
from readcache.serve.frames import TAKEN, BrokenFrame
from readcache.serve.short_client import CallHead, FrameClient

if TYPE_CHECKING:
    from socket import socket
    from typing import BinaryIO

FIRST = b"P"  # of POST
_MOST_LINE = 16 * 1024  # bytes of a header
_MOST_BODY = 64 * 1024 * 1024  # bytes


def read_post(stream: BinaryIO, most: int) -> bytes:
    """Return the body of the next POST, b"" at the end. BrokenFrame for one of more than `most` bytes, OSError."""
    size = 0
    while (line := stream.readline(_MOST_LINE)).strip():
        name, _, value = line.partition(b":")
        size = int(value[:20]) if name.lower() == b"content-length" and value.strip().isdigit() else size
    if size > most:
        raise BrokenFrame(f"a request of {size} bytes: at most {most} are allowed here")
    return stream.read(size)


def send_answer(connection: socket, body: bytes, status: str = "", more: str = "") -> None:
    """Answer a POST. `more`: header fields. OSError."""
    head = f"HTTP/1.1 {status or ('200 OK' if body else '202 Accepted')}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n{more}\r\n".encode() + body)


class HttpClient(FrameClient):
    """It has its answer shown, or tells later what was shown instead."""

    def __init__(self, connection: socket) -> None:
        super().__init__(connection)
        self._frames = [(b"I", b""), (b"S", b"0\0")]  # what it would say by the short way

    def read_head(self) -> CallHead:
        """See `FrameClient`."""
        with self._connection.makefile("rb") as stream:
            first, _, event = read_post(stream, _MOST_BODY).partition(b"\n")
        self._frames[0] = b"I", event
        try:
            given = json.loads(first)
            return CallHead(__version__, "", Caller("hook", [*given["words"]], given["cwd"], {**given["environ"]}))
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise BrokenFrame(f"a request that cannot be read: {error}") from None

    def read(self, most: int) -> tuple[bytes, bytes]:
        """See `FrameClient`."""
        letter, data = self._frames.pop(0) if self._frames else (b"", b"")
        if len(data) > most:
            raise BrokenFrame(f"an event of {len(data)} bytes: at most {most} are allowed here")
        return letter, data

    def send(self, letter: bytes, data: bytes = b"") -> None:
        """See `FrameClient`."""
        if letter != TAKEN:
            status, body = ("200 OK", data) if letter == b"T" else ("409 Conflict", data.rstrip(b"\0"))
            send_answer(self._connection, body, status, "Connection: close\r\n")
