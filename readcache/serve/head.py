"""The short way to a server, for a client that ends with one tool call: how a call begins, see docs/protocol.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from readcache.model.limits import LARGEST_OUTPUT
from readcache.serve.frames import FIRST, BrokenFrame, read_frame

if TYPE_CHECKING:
    from _socket import socket

MOST_HEAD = 4 * 1024 * 1024  # bytes; Linux takes 2 MiB of arguments and environment, and the caller's come on top
MOST_OUTPUT = LARGEST_OUTPUT + 16  # bytes; what a client holds, and a status


class CallHead(NamedTuple):
    """What is about to run, and for whom."""

    version: str
    kind: str
    store: str  # "" for any
    cwd: str
    stdout: str  # "apart" where nothing may be held
    environ: dict[str, str]
    words: list[str]
    caller: list[str]  # the command line of the shell that calls a tool; none where the shell became it


def read_head(connection: socket) -> CallHead | None:
    """The head of a call; None where nothing came. BrokenFrame, OSError."""
    letter, data = read_frame(connection, MOST_HEAD)
    if not letter:
        return None
    if letter != FIRST or data[-1:] != b"\0":
        raise BrokenFrame(f"a call cannot begin with a frame {letter!r}")
    return _parsed(os.fsdecode(data[:-1]).split("\0"))


def _parsed(fields: Sequence[str]) -> CallHead:
    take = iter(fields).__next__
    try:
        version, kind, store, cwd, stdout = (take() for _ in range(5))
        environ, words, caller = (_list(take) for _ in range(3))
    except (StopIteration, RuntimeError, ValueError):
        raise BrokenFrame("a head that is shorter than it claims") from None
    entries = (entry.partition("=") for entry in environ)
    named = {name: value for name, _, value in entries}
    return CallHead(version, kind, store, cwd, stdout, named, words, caller)


def _list(take: Callable[[], str]) -> list[str]:
    return [take() for _ in range(int(take()))]
