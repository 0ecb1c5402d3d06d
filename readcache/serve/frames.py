"""The frames of the frame protocol, see docs/protocol.md. This module is quick to import, for clients in Python.

A frame is a letter, the length of its data in 32 bits, little-endian, and the data. Texts end with a NUL.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Sequence

FIRST = b"Q"  # the first byte of a connection with frames; no JSON starts with it
TAKEN = b"K"  # the server has accepted a hook's call
_FRONT = 5  # bytes before the data of a frame


class BrokenFrame(OSError):
    """Data that is not a frame, or a frame that is not allowed here. The connection is useless afterwards."""


def read_frame(connection: socket, most: int) -> tuple[bytes, bytes]:
    """Return the letter and the data of the next frame, or (b"", b"") at the end of the connection.

    `most`: the maximum length of the data, in bytes. Raise BrokenFrame if there is no valid frame. Raise OSError if the
    connection fails.
    """
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
    """Send a frame. Raise OSError if the connection fails."""
    connection.sendall(frame(letter, data))


def frame(letter: bytes, data: bytes) -> bytes:
    """Return the bytes of a frame."""
    return letter + len(data).to_bytes(4, "little") + data


def texts(*values: str) -> bytes:
    """Return the bytes of texts in a frame."""
    return b"".join(os.fsencode(value) + b"\0" for value in values)


def split_text(data: bytes) -> tuple[str, bytes]:
    """Return the first text of a frame, and the data after it. Raise BrokenFrame if no text ends in it."""
    text, end, rest = data.partition(b"\0")
    if not end:
        raise BrokenFrame("a frame without a text")
    return os.fsdecode(text), rest


def head_texts(first: Sequence[str], *lists: Sequence[str]) -> bytes:
    """Return the data of a head: texts, then lists of texts. The length of each list comes before it."""
    return texts(*first, *(text for each in lists for text in (str(len(each)), *each)))


def _read(connection: socket, size: int) -> bytes:
    parts = []
    while size and (part := connection.recv(min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
