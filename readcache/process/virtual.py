"""Paths of the kernel that are not files: their content depends on the reader, or is gone after a read."""

from __future__ import annotations

import os

_MOUNTS = ("/proc", "/dev")
_MOST_LINKS = 40  # as Linux has it


def is_virtual(path: str) -> bool:
    """Does `path`, taken from the working directory, lead into /proc or /dev, by whatever links? What is below /dev/shm
    are files. Each step counts, since /proc/self/fd/0 leads out again; a circle of links leads nowhere."""
    left, at, links = _steps(os.path.join(os.getcwd(), path)), "/", 0
    while left:
        at = os.path.normpath(os.path.join(at, left.pop()))
        if _is_inside(at):
            return True
        if links < _MOST_LINKS and os.path.islink(at):
            links += 1
            left += _steps(os.readlink(at))
            at = "/" if os.path.isabs(os.readlink(at)) else os.path.dirname(at)
    return False


def is_named_virtual(path: str) -> bool:
    """Is `path`, an absolute one, in /proc or /dev by its name alone? It may be one of another machine."""
    return _is_inside(os.path.normpath(path))


def _steps(path: str) -> list[str]:
    return [step for step in reversed(path.split("/")) if step]


def _is_inside(path: str) -> bool:
    """`/dev` and `/dev/shm` themselves are on the way to files."""
    return path.startswith(tuple(f"{mount}/" for mount in _MOUNTS)) and not f"{path}/".startswith("/dev/shm/")
