"""The short way to a server, for a client that ends with one tool call: its frames, see protocol.md. No judging here.

A frame is a letter, the length of what follows in 32 bits, little-endian, and that. Texts end with a NUL.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

FIRST = b"Q"  # the first byte of a connection that takes this way; no JSON begins so
MOST_HEAD = 4 * 1024 * 1024  # bytes; Linux takes 2 MiB of arguments and environment, and the caller's come on top
MOST_OUTPUT = 8_000_000 + 16  # bytes; what a client holds, see cli/child.py, and a status
_FRONT = struct.Struct("<cI")


class Connection(Protocol):
    """What is needed of a socket."""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Bytes, none at the end. OSError."""

    def sendall(self, data: bytes, /) -> None:
        """OSError."""


class BrokenFrame(OSError):
    """What came is no frame, or not one that may come here: the connection is of no use any more."""


class Head(NamedTuple):
    """What is about to run, and for whom."""

    version: str
    kind: str
    store: str  # "" for any
    cwd: str
    stdout: str  # "apart" where nothing may be held
    environ: dict[str, str]
    words: list[str]
    caller: list[str]  # the command line of the shell that calls a tool; none where the shell became it


def read_frame(connection: Connection, most: int) -> tuple[bytes, bytes]:
    """The letter of the next frame and what it holds; (b"", b"") at the end. BrokenFrame, OSError."""
    front = _read(connection, _FRONT.size)
    if not front:
        return b"", b""
    letter, size = _FRONT.unpack(front)
    if size > most:
        raise BrokenFrame(f"a frame {letter!r} of {size} bytes: at most {most} may come here")
    data = _read(connection, size)
    if len(data) != size:
        raise BrokenFrame(f"a frame {letter!r} that ends too early")
    return letter, data


def send_frame(connection: Connection, letter: bytes, data: bytes = b"") -> None:
    """OSError."""
    connection.sendall(_FRONT.pack(letter, len(data)) + data)


def read_head(connection: Connection) -> Head | None:
    """The head of a call; None where nothing came. BrokenFrame, OSError."""
    letter, data = read_frame(connection, MOST_HEAD)
    if not letter:
        return None
    if letter != FIRST or data[-1:] != b"\0":
        raise BrokenFrame(f"a frame {letter!r} begins no call")
    return _parsed(list(map(os.fsdecode, data[:-1].split(b"\0"))))


def texts(*values: str) -> bytes:
    """Texts as they stand in a frame."""
    return b"".join(os.fsencode(value) + b"\0" for value in values)


def head_frame(head: Head) -> bytes:
    """The frame of a head, for clients in Python."""
    entries = [f"{name}={value}" for name, value in head.environ.items()]
    lists = (text for values in (entries, head.words, head.caller) for text in (str(len(values)), *values))
    data = texts(*head[:5], *lists)
    return _FRONT.pack(FIRST, len(data)) + data


def split_text(data: bytes) -> tuple[str, bytes]:
    """The first text of a frame, and what comes after it. BrokenFrame where none ends."""
    text, end, rest = data.partition(b"\0")
    if not end:
        raise BrokenFrame("a frame without a text")
    return os.fsdecode(text), rest


def _parsed(fields: Sequence[str]) -> Head:
    take = iter(fields).__next__
    try:
        version, kind, store, cwd, stdout = (take() for _ in range(5))
        environ, words, caller = (_list(take) for _ in range(3))
    except (StopIteration, RuntimeError, ValueError):
        raise BrokenFrame("a head with less in it than it says") from None
    entries = (entry.partition("=") for entry in environ)
    named = {name: value for name, _, value in entries}
    return Head(version, kind, store, cwd, stdout, named, words, caller)


def _list(take: Callable[[], str]) -> list[str]:
    return [take() for _ in range(int(take()))]


def _read(connection: Connection, size: int) -> bytes:
    parts = []
    while size and (part := connection.recv(min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
