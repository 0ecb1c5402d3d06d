"""A client that sends a hook's event by HTTP: a plugin in a host that gives it no other way to a socket.

Each connection has one POST. Its body is a line of JSON and the event. The line describes the caller, as the head of
the frame protocol does. See docs/protocol.md.
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

FIRST = b"P"  # the first byte of POST
_MOST_LINE = 16 * 1024  # bytes of a header
_MOST_BODY = 64 * 1024 * 1024  # bytes


class HttpClient(FrameClient):
    """The client of one HTTP connection. Its host shows the answer, or a later event says what was shown instead."""

    def __init__(self, connection: socket) -> None:
        super().__init__(connection)
        self._frames = [(b"I", b""), (b"S", b"0\0")]  # its frames in the frame protocol

    def read_head(self) -> CallHead:
        """See `FrameClient`."""
        size = 0
        with self._connection.makefile("rb") as stream:
            while (line := stream.readline(_MOST_LINE)).strip():
                name, _, value = line.partition(b":")
                size = int(value) if name.lower() == b"content-length" and value.strip().isdigit() else size
            body = stream.read(min(size, _MOST_BODY))
        first, _, event = body.partition(b"\n")
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
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self._connection.sendall(head.encode() + body)
