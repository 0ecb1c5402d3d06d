"""Open the transcript that a host names, which may be any path."""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import BinaryIO


def open_plain(path: str) -> BinaryIO:
    """Return a plain file, opened to read bytes. Raise OSError for any other file: a pipe would block, and a device has
    no end."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # check first: opening a pipe would let a waiting writer continue
        raise OSError(errno.EINVAL, "not a plain file", path)
    file = open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb")  # noqa: SIM115  the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # replaced in between
        file.close()
        raise OSError(errno.EINVAL, "not a plain file", path)
    return file


def open_text(path: str) -> io.TextIOWrapper:
    """Return a plain file, opened to read UTF-8. Raise OSError as `open_plain` does."""
    return io.TextIOWrapper(open_plain(path), encoding="utf-8")
