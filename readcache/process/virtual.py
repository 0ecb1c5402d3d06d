"""Recognise paths of the kernel that are not files: their content depends on the reader, or is gone after a read.

Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os

_MOUNTS = ("/proc", "/dev")
_MOST_LINKS = 40  # as in Linux; beyond it, links are in a circle and lead nowhere


def is_virtual(path: str) -> bool:
    """Return True if `path`, relative to the working directory, leads into /proc or /dev, by its name or through links.
    Paths below /dev/shm are files."""
    left, at, links = _steps(os.path.join(os.getcwd(), path)), "/", 0
    while left:
        at = os.path.normpath(os.path.join(at, left.pop()))
        if _is_inside(at):  # checked at each step, because /proc/self/fd/0 leads out again
            return True
        if links < _MOST_LINKS and os.path.islink(at):
            links += 1
            left += _steps(os.readlink(at))
            at = "/" if os.path.isabs(os.readlink(at)) else os.path.dirname(at)
    return False


def is_named_virtual(path: str) -> bool:
    """Return True if the absolute path is in /proc or /dev by its name. Links are not followed, because the path may be
    on another machine."""
    return _is_inside(os.path.normpath(path))


def _steps(path: str) -> list[str]:
    return [step for step in reversed(path.split("/")) if step]


def _is_inside(path: str) -> bool:
    """Return True for a path below one of the mounts, except below /dev/shm. `/dev` and `/dev/shm` themselves are on
    the way to files."""
    return path.startswith(tuple(f"{mount}/" for mount in _MOUNTS)) and not f"{path}/".startswith("/dev/shm/")
