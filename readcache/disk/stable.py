"""Reading a file that may be written meanwhile: what is read between two equal looks at its state is one version.

Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TypeVar

BLOCK = 1024 * 1024  # bytes read at a time
TRIES = 3  # at a file that is being written

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a FIFO without a writer would block

T = TypeVar("T")


def open_regular(path: str) -> tuple[int, os.stat_result]:
    """(A descriptor of the regular file at `path`, its state before). Links are followed; the caller closes it.

    OSError; ValueError with a reason in words for anything but a regular file, and for a path with a NUL.
    """
    before = os.stat(path)
    _require_regular(before)  # first: opening a FIFO or a device does something, a writer that waits would go on
    return os.open(path, _READ), before


def read_stable(fd: int, before: os.stat_result, read: Callable[[os.stat_result], T]) -> tuple[T, os.stat_result, bool]:
    """(what `read(state)` gave, the file's state then, whether the file held still meanwhile).

    `before` is the file's state at most a moment ago. `read` is called again, at most TRIES times in all, from the
    beginning of the file, while it does not hold still. OSError; ValueError when it is no regular file any more.
    """
    for attempt in range(TRIES):
        if attempt:
            os.lseek(fd, 0, os.SEEK_SET)
        got = read(before)
        after = os.fstat(fd)
        if _same_state(before, after):
            return got, after, True
        before = after
        _require_regular(before)
    return got, before, False


def _same_state(a: os.stat_result, b: os.stat_result) -> bool:
    same_times = a.st_mtime_ns == b.st_mtime_ns and a.st_ctime_ns == b.st_ctime_ns
    return same_times and a.st_size == b.st_size and a.st_ino == b.st_ino and a.st_dev == b.st_dev


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("is a directory" if stat.S_ISDIR(found.st_mode) else "not a regular file")
