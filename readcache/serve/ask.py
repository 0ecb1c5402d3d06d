"""`readcache hook` by a server: ask the running server, and print its answer.

A host starts this at each tool call, and its user waits, so this module imports as little as possible. If no server
answers, `hook` does the work in this process, and starts a server for the next time.
"""

from __future__ import annotations

import os
import sys

from readcache import __version__
from readcache.process.mode import OFF, acts, mode_named

# Seconds until the server accepts a call, and seconds until it answers. The answer may take longer, because some hosts
# write the transcript that a hook must read while the hook runs. The rest of `HOOK_SECONDS` is for this process to do
# the same work if the server does not answer.
SOON, PATIENCE = 0.5, 2.5
_MOST = 64 * 1024 * 1024  # bytes of an answer


def ask_hook(words: list[str]) -> bytes | None:
    """Have the server answer one event from stdin. Return None if it did. Otherwise return the data from stdin, for
    `hook` to answer.

    `words`: the command line after `hook`.
    """
    # The compiled program that became this process names its version. If it asked the server of the same version, do
    # not ask again. A program of another version asked another server.
    data, was_asked = b"", os.environ.pop("READCACHE_ALONE", "") == __version__
    try:
        data = sys.stdin.buffer.read()  # also if nothing is done, because the host is writing it
        return None if not was_asked and _is_wanted() and _is_answered(words, data) else data
    except Exception:  # no server is a correct state
        return data


def start_server(words: list[str]) -> None:
    """Start the server that `ask_hook` did not find, for the next time. Do not wait for it."""
    from readcache.serve import address
    from readcache.serve.address import server_paths

    try:
        if _is_wanted():
            address.start(*server_paths(_store(words)))
    except Exception:  # a missing server costs only speed
        pass


def _is_wanted() -> bool:
    """Return False if no server may be asked or started: READCACHE_SERVER is off, or READCACHE switches readcache
    off."""
    return os.environ.get("READCACHE_SERVER") not in OFF and acts(mode_named(os.environ))


def _is_answered(words: list[str], data: bytes) -> bool:
    from readcache.serve import address, frames
    from readcache.serve.address import server_paths

    path, file = server_paths(_store(words))
    environ = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("READCACHE")]
    head = frames.head_texts((__version__, "hook", file, os.getcwd(), ""), environ, words, ())
    if address.is_left_aside(path):
        return False
    connection = address.reach(path, SOON)
    try:
        connection.sendall(frames.frame(frames.FIRST, head) + frames.frame(b"I", data))
        letter, text = frames.read_frame(connection, _MOST)
        if letter == frames.TAKEN:
            connection.settimeout(PATIENCE)
            letter, text = frames.read_frame(connection, _MOST)
        if letter != b"T":
            return False
        if _is_printed(text):
            frames.send_frame(connection, b"S")
    except TimeoutError:
        address.leave_aside(path)
        return False
    finally:
        connection.close()
    return True


def _is_printed(text: bytes) -> bool:
    try:
        while text:
            text = text[os.write(1, text) :]
    except OSError:  # nobody reads it, and nobody would read another answer
        return False
    return True


def _store(words: list[str]) -> str:
    """Return the store as the user named it. The option overrides the environment."""
    if "--store" in words[:-1]:
        return words[words.index("--store") + 1]
    return os.environ.get("READCACHE_STORE", "")
