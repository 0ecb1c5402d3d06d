"""Lines for people. What names a file, a command or a session may hold: control characters are shown, not sent."""

from __future__ import annotations

import sys
from typing import TextIO


def say(line: str) -> None:
    """One line on stdout."""
    _print(line, sys.stdout)


def warn(line: str) -> None:
    """One line on stderr, which says who speaks; none where stderr is closed."""
    _print("readcache: " + " ".join(line.split()), sys.stderr)


def one_line(text: str) -> str:
    """Newlines and other control characters as `\\n` and the like."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _print(line: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed when we were started
        return
    encoding = stream.encoding or "utf-8"
    print(one_line(line).encode(encoding, "backslashreplace").decode(encoding), file=stream)
