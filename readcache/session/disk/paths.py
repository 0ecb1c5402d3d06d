"""Paths of this machine: where links lead, and paths of the kernel that are not files.

Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_MOUNTS = ("/proc", "/dev")
_MOST_LINKS = 40  # as Linux has it


def real_paths(names: Iterable[str], directory: str) -> frozenset[str]:
    """The real paths of those names that are a link, or stand behind one. `directory`: where relative ones are. Names
    that are not file names are left out. Never raises."""
    home = os.path.expanduser("~")  # not of `~name`: looking up another user may take long
    given = {home + name[1:] if name.startswith("~/") else os.path.join(directory, name) for name in names}
    found = ((path, os.path.realpath(path)) for path in given if os.path.lexists(path))
    return frozenset(real for path, real in found if real != path)


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
