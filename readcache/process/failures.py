"""Note failures that no store took: one line each in `failures.log`, in the user's state directory.

Nothing is printed about them, because an agent's tool or its host would treat it as output. `doctor` reports them.
"""

from __future__ import annotations

import contextlib
import os
import time

from readcache.core.model.errors import ReadcacheError
from readcache.process.state import state_directory

# Bytes. Without a limit, a store that stays broken would fill the disk, one command at a time.
MOST_BYTES = 256 * 1024


def path() -> str:
    """Return the path of the file with the failures. Raise UsageError without a home directory."""
    return os.path.join(state_directory(), "failures.log")


def note(session: str, cause: str, detail: str) -> None:
    """Add one failure. If even that fails, the failure is lost."""
    at = time.strftime("%Y-%m-%d %H:%M:%S")
    line = " ".join(f"{at} {session}: {cause}: {detail}".split()) + "\n"
    with contextlib.suppress(OSError, ReadcacheError):
        os.makedirs(state_directory(), mode=0o700, exist_ok=True)
        with open(path(), "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            if file.tell() < MOST_BYTES:
                file.write(line.encode("utf-8", "replace"))


def note_error(session: str, error: Exception) -> None:
    """Add an exception as one failure."""
    note(session, type(error).__name__, str(error))


def noted() -> list[str]:
    """Return the failures as "time session: cause: detail", oldest first. Raise OSError if they cannot be read."""
    if not os.path.exists(path()):
        return []
    with open(path(), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()
