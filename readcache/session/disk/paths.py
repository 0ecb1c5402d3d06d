"""Paths of this machine: the targets of links, and paths of the kernel that are not files.

Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_MOUNTS = ("/proc", "/dev")
_MOST_LINKS = 40  # the limit in Linux


def real_paths(names: Iterable[str], directory: str) -> frozenset[str]:
    """Return the real paths of the names that are links, or whose path leads through a link. Skip names of nothing on
    the disk. `directory`: the base of relative names. Never raise."""
    home = os.path.expanduser("~")  # only `~`, not `~name`: looking up another user may take long
    given = {home + name[1:] if name.startswith("~/") else os.path.join(directory, name) for name in names}
    found = ((path, os.path.realpath(path)) for path in given if os.path.lexists(path))
    return frozenset(real for path, real in found if real != path)


def is_virtual(path: str) -> bool:
    """Return True if `path`, relative to the working directory, leads into /proc or /dev, through any links. Paths
    below /dev/shm are files."""
    # Each step is checked, because /proc/self/fd/0 leads out again. A circle of links leads nowhere.
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
    """Return True if the absolute `path` is in /proc or /dev by its name alone. It may be from another machine."""
    return _is_inside(os.path.normpath(path))


def _steps(path: str) -> list[str]:
    return [step for step in reversed(path.split("/")) if step]


def _is_inside(path: str) -> bool:
    """Return True if the path is below /proc or /dev, but not in /dev/shm."""
    # `/dev` and `/dev/shm` themselves do not count, because they are on the way to files.
    return path.startswith(tuple(f"{mount}/" for mount in _MOUNTS)) and not f"{path}/".startswith("/dev/shm/")
