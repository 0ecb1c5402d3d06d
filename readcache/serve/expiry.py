"""Decide when a server that was started on demand exits."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping

TICK = 5.0  # seconds between two checks
Stamp = tuple[int, int, int]


def wait_until_useless(ended: threading.Event, path: str, idle_for: Callable[[], float], idle_seconds: float) -> str:
    """Wait until the server is not needed any more. Return the reason.

    "ended": `ended` is set. "idle": no client came for `idle_seconds`. "unreachable": the socket at `path` was removed
    or replaced. "replaced": files of this package changed since the server started, as in an upgrade.
    """
    package, socket = _loaded(), _stamp(path)
    while not ended.wait(min(TICK, idle_seconds)):
        if idle_for() >= idle_seconds:
            return "idle"
        if _stamp(path) != socket:
            return "unreachable"
        if any(_stamp(file) != before for file, before in package.items()):
            return "replaced"
    return "ended"


def _loaded() -> Mapping[str, Stamp | None]:
    """Return the stamps of this package's loaded files, by path."""
    name = __name__.partition(".")[0]
    modules = [module for full, module in list(sys.modules.items()) if full.partition(".")[0] == name]
    files = [file for module in modules if (file := getattr(module, "__file__", None))]
    return {file: _stamp(file) for file in files}


def _stamp(path: str) -> Stamp | None:
    """Return the inode, the modification time (ns) and the size (bytes) of a file, or None if it does not exist."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
