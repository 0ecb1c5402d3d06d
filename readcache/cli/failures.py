"""Failures of `readcache run` that no store took: one JSON line each in `failures.log`, in the user's state directory.

Nothing is printed about them, since the agent's tool would take it for output; `doctor` tells of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from readcache.cli.settings import state_directory
from readcache.errors import ReadcacheError

# Bytes. A store that stays broken would fill the disk one command at a time.
MOST_BYTES = 256 * 1024


def path() -> str:
    """Where the failures are noted. UsageError without a home directory."""
    return os.path.join(state_directory(), "failures.log")


def note(session: str, cause: str, detail: str) -> None:
    """Adds one failure; when even that fails, it is lost."""
    line = json.dumps({"at": round(time.time()), "session": session, "cause": cause, "detail": detail}) + "\n"
    with contextlib.suppress(OSError, ReadcacheError):
        os.makedirs(state_directory(), mode=0o700, exist_ok=True)
        fd = os.open(path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.fstat(fd).st_size < MOST_BYTES:
                os.write(fd, line.encode())
        finally:
            os.close(fd)


def note_error(session: str, error: Exception) -> None:
    """Adds one failure."""
    note(session, type(error).__name__, str(error))


def noted() -> list[dict[str, object]]:
    """The failures, oldest first. OSError when they cannot be read."""
    out: list[dict[str, object]] = []
    if not os.path.exists(path()):
        return out
    with open(path(), encoding="utf-8", errors="replace") as file:
        for line in file:
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    out.append(entry)
    return out
