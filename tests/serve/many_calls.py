"""A reader of files who takes the short way, and holds each answer against what it was shown before.

    python -m tests.serve.many_calls SESSION CALLS      in an environment with a state directory

Prints the number of answers of each kind, as JSON. Exit status 1, and what was wrong, after a wrong one.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter

from readcache import __version__
from readcache.serve import address, frames
from readcache.serve.address import server_paths

PATIENCE = 20.0  # seconds; a shared machine with 32 readers is slow, and a late answer is no wrong one
PAUSE = 0.02  # seconds; a call without a server takes nothing: all would be over before the next server is there


def content(file: int, version: int) -> bytes:
    """A file's text; no two of them share a line."""
    return b"".join(b"line %d of version %d of file %d\n" % (n, version, file) for n in range(150 + file))


def ask(path: str, session: str, file: int, text: bytes) -> tuple[bytes, bytes]:
    """(the letter of the answer, what is printed in the place of `text`). NoServer, OSError."""
    connection = address.reach(path, PATIENCE)
    try:
        env = (f"READCACHE_SESSION={session}", "READCACHE=on")
        head = frames.head_texts((__version__, "run", "", "/w", ""), env, (f"cat f{file}",), ())
        frames.send_frame(connection, b"Q", head)
        letter, _ = frames.read_frame(connection, 1 << 16)
        if not letter:
            raise ConnectionError("the server was killed")
        if letter != b"H":
            raise AssertionError(f"{letter!r} where a read is to be held")
        frames.send_frame(connection, b"O", b"0\0" + text)
        letter, answer = frames.read_frame(connection, 1 << 20)
        if letter in (b"A", b"T"):
            frames.send_frame(connection, b"S", f"{time.time()}\0".encode())
        return letter, answer if letter == b"T" else text
    finally:
        connection.close()


def main() -> int:
    """The command line."""
    session, calls = sys.argv[1], int(sys.argv[2])
    path, store = server_paths("")
    rng, versions = random.Random(session), [0] * 6
    shown: set[bytes] = set()
    kinds: Counter[str] = Counter()
    for _ in range(calls):
        file = rng.randrange(len(versions))
        versions[file] += rng.random() < 0.05
        text = content(file, versions[file])
        try:
            letter, printed = ask(path, session, file, text)
        except (address.NoServer, OSError):
            letter, printed = b"-", text
            address.start(path, store)
            time.sleep(PAUSE)
        kinds[letter.decode()] += 1
        if printed == text:
            shown.add(text)
        elif text not in shown or printed.count(b"\n") != 1 or b"UNCHANGED" not in printed:
            print(f"{session} was told {printed!r} of file {file}, version {versions[file]}", file=sys.stderr)
            return 1
    print(json.dumps(kinds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
