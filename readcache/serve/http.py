"""HTTP on the socket of `readcache serve`, for clients that speak HTTP already.

The body of a POST is a request in JSON-RPC. A server that was started on demand has one method, `hook`, and answers one
POST for each connection. See docs/protocol.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from readcache import __version__
from readcache.process.plan import Caller
from readcache.serve.fields import NOT_DONE
from readcache.serve.frames import TAKEN, BrokenFrame
from readcache.serve.short_client import CallHead, FrameClient

if TYPE_CHECKING:
    from socket import socket
    from typing import BinaryIO

FIRST = b"P"  # the first byte of POST
_MOST_LINE = 16 * 1024  # bytes of a header
MOST_EVENT = 64 * 1024 * 1024  # bytes of a hook's event


def read_post(stream: BinaryIO, most: int) -> bytes:
    """Return the body of the next POST, or b"" at the end. Raise BrokenFrame for more than `most` bytes, and OSError if
    the connection fails."""
    size = 0
    while (line := stream.readline(_MOST_LINE)).strip():
        name, _, value = line.partition(b":")
        size = int(value[:20]) if name.lower() == b"content-length" and value.strip().isdigit() else size
    if size > most:
        raise BrokenFrame(f"a request of {size} bytes: at most {most} are allowed here")
    return stream.read(size)


def send_answer(connection: socket, body: bytes, status: str = "", more: str = "") -> None:
    """Answer a POST. `status`: default 200, or 202 without a body. `more`: header fields. Raise OSError if the
    connection fails."""
    head = f"HTTP/1.1 {status or ('200 OK' if body else '202 Accepted')}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n{more}\r\n".encode() + body)


class HttpClient(FrameClient):
    """The client of one HTTP connection. Its host shows the answer, or a later event says what was shown instead."""

    def read_head(self) -> CallHead:
        """See `FrameClient`."""
        with self._connection.makefile("rb") as stream:
            first, _, event = read_post(stream, MOST_EVENT).partition(b"\n")
        try:
            request = json.loads(first)
            self._id, given = request.get("id"), request.get("params", request)
            # The first builds sent `params` alone, and the event on the next line.
            event = event if given is request else given["event"].encode()
            self._frames = [(b"I", event), (b"S", b"0\0")]  # what it would send in frames
            return __version__, "", Caller("hook", [*given["words"]], given["cwd"], {**given["environ"]})
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise BrokenFrame(f"a request that cannot be read: {error}") from None

    def read(self, most: int) -> tuple[bytes, bytes]:  # noqa: ARG002  no event is longer than `MOST_EVENT`
        """See `FrameClient`."""
        return self._frames.pop(0) if self._frames else (b"", b"")

    def send(self, letter: bytes, data: bytes = b"") -> None:
        """See `FrameClient`."""
        if letter == TAKEN:
            return
        is_answer, text = letter == b"T", data.rstrip(b"\0").decode("utf-8", "replace")
        said = {"result": text} if is_answer else {"error": {"code": NOT_DONE, "message": text}}
        body = text if self._id is None else json.dumps({"jsonrpc": "2.0", "id": self._id, **said})
        status = "200 OK" if is_answer else "409 Conflict"
        send_answer(self._connection, body.encode(), status, "Connection: close\r\n")
