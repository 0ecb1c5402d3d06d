"""`readcache hook` by the server: asks the one that is there, and prints what it answers.

A host starts this at each tool call, and its user waits: what is imported here is what a start of Python does not have
already, and no more. If no server answers, `hook` does the work in this process, and starts a server for the next time.
"""

from __future__ import annotations

import os
import sys

from readcache import __version__
from readcache.process.mode import OFF, acts, mode_named

# Seconds until the server takes a call, and until it answers: some hosts write down what a hook has to read while it
# runs. What then is left of `HOOK_SECONDS` is for a process to do the same.
SOON, PATIENCE = 0.5, 2.5
_MOST = 64 * 1024 * 1024  # bytes of an answer


def ask_hook(words: list[str]) -> bytes | None:
    """Have the server answer one event from stdin. `words`: the command line after `hook`. None when that was done;
    else what was read from stdin, for `hook` to answer."""
    # The compiled program that became this one says its version: one of another version asked for another server.
    data, was_asked = b"", os.environ.pop("READCACHE_ALONE", "") == __version__
    try:
        data = sys.stdin.buffer.read()  # also where nothing is done: the host is writing it
        return None if not was_asked and _is_wanted() and _is_answered(words, data) else data
    except Exception:  # no server is a correct state
        return data


def start_server(words: list[str]) -> None:
    """Starts the server that `ask_hook` did not find, for the next time; does not wait for it."""
    from readcache.serve import address
    from readcache.serve.address import server_paths

    try:
        if _is_wanted():
            address.start(*server_paths(_store(words)))
    except Exception:  # it costs nothing but speed
        pass


def _is_wanted() -> bool:
    """READCACHE_SERVER=off: no server is asked or started. READCACHE=off: nothing at all is done."""
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
    except OSError:  # no one reads it, nor anything printed instead
        return False
    return True


def _store(words: list[str]) -> str:
    """The store as it is named; an option wins over the environment."""
    if "--store" in words[:-1]:
        return words[words.index("--store") + 1]
    return os.environ.get("READCACHE_STORE", "")
