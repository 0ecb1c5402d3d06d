"""Failures of `readcache run` that no store took: one line each in `failures.log`, in the user's state directory.

Nothing is printed about them, since the agent's tool would take it for output; `doctor` tells of them.
"""

from __future__ import annotations

import contextlib
import os
import time

from readcache.core.model.errors import ReadcacheError
from readcache.process.state import state_directory

# Bytes. A store that stays broken would fill the disk one command at a time.
MOST_BYTES = 256 * 1024


def path() -> str:
    """Where the failures are noted. UsageError without a home directory."""
    return os.path.join(state_directory(), "failures.log")


def note(session: str, cause: str, detail: str) -> None:
    """Adds one failure; when even that fails, it is lost."""
    at = time.strftime("%Y-%m-%d %H:%M:%S")
    line = " ".join(f"{at} {session}: {cause}: {detail}".split()) + "\n"
    with contextlib.suppress(OSError, ReadcacheError):
        os.makedirs(state_directory(), mode=0o700, exist_ok=True)
        with open(path(), "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            if file.tell() < MOST_BYTES:
                file.write(line.encode("utf-8", "replace"))


def note_error(session: str, error: Exception) -> None:
    """Adds one failure."""
    note(session, type(error).__name__, str(error))


def noted() -> list[str]:
    """The failures as "time session: cause: detail", oldest first. OSError when they cannot be read."""
    if not os.path.exists(path()):
        return []
    with open(path(), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()
