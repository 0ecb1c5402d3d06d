"""Change several of a user's files: either all of them or none."""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
from collections.abc import Collection, Sequence
from typing import NamedTuple

from readcache import ReadcacheError


class FileChange(NamedTuple):
    """A file's content before and after a change.

    `path`: the path as it was asked for. `target`: the file that `path` leads to if it is a link, otherwise `path`
    itself. `before`, `after`: the bytes, or None if the file does not exist.
    """

    path: str
    target: str
    before: bytes | None
    after: bytes | None
    directories: tuple[str, ...] = ()  # created for the file, removed with it if empty; the deepest first

    def diff(self) -> str:
        """Return the change as a unified diff. A file that does not exist is named /dev/null. An empty file has no
        lines."""
        old = (self.before or b"").decode("utf-8", "replace").splitlines(keepends=True)
        new = (self.after or b"").decode("utf-8", "replace").splitlines(keepends=True)
        names = [self.path if data is not None else "/dev/null" for data in (self.before, self.after)]
        lines = difflib.unified_diff(old, new, names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def look(path: str) -> tuple[str, bytes | None]:
    """Return (the file that `path` leads to, its bytes or None if it does not exist).

    Raise ReadcacheError if it cannot be edited: a broken link, not a plain file, or unreadable.
    """
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


def missing_directories(path: str, made: Collection[str] = ()) -> tuple[str, ...]:
    """Return the directories above `path`, the deepest first, that do not exist or that readcache created (`made`). The
    list ends at the first other directory."""
    found, directory = [], os.path.dirname(path)
    while directory in made or not os.path.lexists(directory):
        found.append(directory)
        directory = os.path.dirname(directory)
    return tuple(found)


def require_writable(change: FileChange) -> None:
    """Raise ReadcacheError if the file is read-only."""
    # `os.replace` would ignore that the file is read-only.
    if change.before is not None and not (os.stat(change.target).st_mode & 0o222 and os.access(change.target, os.W_OK)):
        raise ReadcacheError(f"{change.path} is read-only; nothing was changed: make it writable first")


def write_all(changes: Sequence[FileChange]) -> None:
    """Write all the changes. If one fails, undo the earlier ones and raise ReadcacheError."""
    done: list[FileChange] = []
    for change in changes:
        try:
            _write(change)
        except (OSError, ReadcacheError) as error:
            _remove_empty(change.directories)
            for back in reversed(done):
                with contextlib.suppress(OSError, ReadcacheError):
                    _write(back)
            reason = error.strerror if isinstance(error, OSError) else error
            raise ReadcacheError(f"{change.path} was not written: {reason}; nothing was changed") from None
        done.append(change._replace(before=change.after, after=change.before))


def _write(change: FileChange) -> None:
    target, beside = change.target, f"{change.target}.{os.urandom(6).hex()}"
    if look(target)[1] != change.before:
        raise ReadcacheError("another program has just changed it; try again")
    if change.after is None:
        os.unlink(target)
        _remove_empty(change.directories)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        with open(beside, "xb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if change.before is not None:
            was = os.stat(target)
            with contextlib.suppress(OSError):  # fails if the user may not give a file to that owner or group
                os.chown(beside, was.st_uid, was.st_gid)
            os.chmod(beside, stat.S_IMODE(was.st_mode))
        os.replace(beside, target)
    finally:
        with contextlib.suppress(OSError):  # it only still exists if something failed
            os.unlink(beside)


def _remove_empty(directories: Sequence[str]) -> None:
    for directory in directories:
        with contextlib.suppress(OSError):  # it is not empty, or was never created
            os.rmdir(directory)
