"""The frames of the short way, see docs/protocol.md. Quick to import, for clients in Python.

A frame is a letter, the length of its data in 32 bits, little-endian, and the data. Texts end with a NUL.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Sequence

FIRST = b"Q"  # the first byte of a connection that takes this way; no JSON begins so
TAKEN = b"K"  # a hook's call is in the server's hands
_FRONT = 5  # bytes in front of what a frame holds


class BrokenFrame(OSError):
    """The data is not a frame, or not one allowed here. The connection is useless now."""


def read_frame(connection: socket, most: int) -> tuple[bytes, bytes]:
    """The letter of the next frame and what it holds; (b"", b"") at the end. BrokenFrame, OSError."""
    front = _read(connection, _FRONT)
    if not front:
        return b"", b""
    letter, size = front[:1], int.from_bytes(front[1:], "little")
    if len(front) < _FRONT or size > most:
        raise BrokenFrame(f"a frame {letter!r} of {size} bytes: at most {most} are allowed here")
    data = _read(connection, size)
    if len(data) != size:
        raise BrokenFrame(f"a frame {letter!r} that ends too early")
    return letter, data


def send_frame(connection: socket, letter: bytes, data: bytes = b"") -> None:
    """OSError."""
    connection.sendall(frame(letter, data))


def frame(letter: bytes, data: bytes) -> bytes:
    """A frame as it is sent."""
    return letter + len(data).to_bytes(4, "little") + data


def texts(*values: str) -> bytes:
    """Texts as they stand in a frame."""
    return b"".join(os.fsencode(value) + b"\0" for value in values)


def split_text(data: bytes) -> tuple[str, bytes]:
    """The first text of a frame, and what comes after it. BrokenFrame where none ends."""
    text, end, rest = data.partition(b"\0")
    if not end:
        raise BrokenFrame("a frame without a text")
    return os.fsdecode(text), rest


def head_texts(first: Sequence[str], *lists: Sequence[str]) -> bytes:
    """What a head holds: texts, then lists of texts."""
    return texts(*first, *(text for each in lists for text in (str(len(each)), *each)))


def _read(connection: socket, size: int) -> bytes:
    parts = []
    while size and (part := connection.recv(min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
