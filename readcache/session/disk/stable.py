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


def read_stable(path: str, read: Callable[[int, os.stat_result], T]) -> tuple[T, bool]:
    """(what `read(descriptor, state)` gave of the regular file at `path`, whether the file held still meanwhile).

    Links are followed. If the file changes meanwhile, `read` is called again from the beginning, at most TRIES times in
    all. OSError; ValueError with a reason in words for anything but a regular file, and for a path with a NUL.
    """
    before = os.stat(path)
    _require_regular(before)  # first: opening a FIFO or a device does something, a writer that waits would go on
    fd = os.open(path, _READ)
    try:
        for attempt in range(TRIES):
            if attempt:
                os.lseek(fd, 0, os.SEEK_SET)
            got = read(fd, before)
            after = os.fstat(fd)
            if _same_state(before, after):
                return got, True
            before = after
            _require_regular(before)
        return got, False
    finally:
        os.close(fd)


def _same_state(a: os.stat_result, b: os.stat_result) -> bool:
    same_times = a.st_mtime_ns == b.st_mtime_ns and a.st_ctime_ns == b.st_ctime_ns
    return same_times and a.st_size == b.st_size and a.st_ino == b.st_ino and a.st_dev == b.st_dev


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("is a directory" if stat.S_ISDIR(found.st_mode) else "not a regular file")
