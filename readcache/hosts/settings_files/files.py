"""Changes several of a user's files, all of them or none."""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from readcache import ReadcacheError


class FileChange(NamedTuple):
    """A file before and after; None: it is not there. `target`: where a link leads, else the path itself."""

    path: str
    target: str
    before: bytes | None
    after: bytes | None
    directories: tuple[str, ...] = ()  # that are to go with the file when they are empty, the deepest first

    def diff(self) -> str:
        """As a unified diff; a file that is empty or not there is /dev/null or no lines."""
        old = (self.before or b"").decode("utf-8", "replace").splitlines(keepends=True)
        new = (self.after or b"").decode("utf-8", "replace").splitlines(keepends=True)
        names = [self.path if data is not None else "/dev/null" for data in (self.before, self.after)]
        lines = difflib.unified_diff(old, new, names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def look(path: str) -> tuple[str, bytes | None]:
    """(where it leads, what is in it). ReadcacheError for what cannot be edited."""
    target = os.path.realpath(path)
    try:
        if not os.path.lexists(path):
            return target, None
        if not os.path.exists(target):
            raise ReadcacheError(f"{path} is a link to {target}, which is not there: repair or remove the link")
        if not stat.S_ISREG(os.stat(target).st_mode):
            raise ReadcacheError(f"{path} is not a file: move it away")
        with open(target, "rb") as file:
            return target, file.read()
    except OSError as error:
        raise ReadcacheError(f"cannot read {path}: {error.strerror}; change its rights") from None


def missing_directories(path: str) -> tuple[str, ...]:
    """Those that have to be made for the file, the deepest first."""
    found, place = [], os.path.dirname(path)
    while not os.path.lexists(place):
        found.append(place)
        place = os.path.dirname(place)
    return tuple(found)


def require_writable(change: FileChange) -> None:
    """ReadcacheError for a file that is read-only, or in a directory in which nothing can be written."""
    target, place = change.target, os.path.dirname(change.target)
    if change.before is not None and not (os.stat(target).st_mode & 0o222 and os.access(target, os.W_OK)):
        raise ReadcacheError(f"{change.path} is read-only; nothing was changed: make it writable first")
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):
        raise ReadcacheError(f"{change.path} cannot be written, {place} is not writable; nothing was changed")


def write_all(changes: Sequence[FileChange]) -> None:
    """Makes all the changes; where one fails, those before it are taken back. ReadcacheError."""
    for change in changes:
        require_writable(change)
    done: list[FileChange] = []
    for change in changes:
        made = missing_directories(change.target)
        try:
            _write(change)
        except (OSError, ReadcacheError) as error:
            for back in reversed(done):
                with contextlib.suppress(OSError, ReadcacheError):
                    _write(back)
            with contextlib.suppress(OSError):
                _remove_empty(made)
            reason = error.strerror if isinstance(error, OSError) else error
            raise ReadcacheError(f"{change.path} was not written: {reason}; nothing was changed") from None
        done.append(FileChange(change.path, change.target, change.after, change.before, made))


def _write(change: FileChange) -> None:
    target = change.target
    if look(target)[1] != change.before:
        raise ReadcacheError("another program has just changed it; try again")
    if change.after is None:
        os.unlink(target)
        _remove_empty(change.directories)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with _beside(target) as (name, fd):
        with os.fdopen(fd, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(fd)
        if change.before is not None:
            was = os.stat(target)
            with contextlib.suppress(OSError):  # where it belongs to a group of ours
                os.chown(name, was.st_uid, was.st_gid)
            os.chmod(name, stat.S_IMODE(was.st_mode))
        os.replace(name, target)


@contextlib.contextmanager
def _beside(target: str) -> Iterator[tuple[str, int]]:
    """A new file in the same directory, which is gone afterwards unless it was renamed."""
    name = f"{target}.{os.urandom(6).hex()}"
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        yield name, fd
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _remove_empty(directories: Sequence[str]) -> None:
    for directory in directories:
        if os.path.isdir(directory) and os.listdir(directory):
            break
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(directory)
