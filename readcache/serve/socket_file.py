"""A Unix socket that only its owner can use."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator

from readcache import UsageError
from readcache.serve.address import short_name

BACKLOG = 128  # when this many wait, further clients are refused immediately and continue without readcache
LOCK_SECONDS = 5.0  # a starting server keeps the lock for milliseconds
MOST_PATH_BYTES = 104 - 10  # the lowest limit of all systems (macOS), less room for a process ID


@contextlib.contextmanager
def listening(path: str, *, any_length: bool = False) -> Iterator[socket.socket]:
    """Yield a socket, mode 0600, that listens at `path`. Remove its file at the end.

    Only the owner may be able to write to the socket's directory. The socket of a dead server is replaced.
    `any_length`: True if the clients can reach a path that is too long for a socket. Raise UsageError if the path
    cannot be used, or if a server answers there.
    """
    path = os.path.abspath(os.path.expanduser(path))
    if len(os.fsencode(path)) > MOST_PATH_BYTES and not any_length:
        raise UsageError(f"the socket's path {path} has more than {MOST_PATH_BYTES} bytes: give a shorter one")
    folder = os.path.dirname(path)
    try:
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _check_folder(folder, os.fstat(folder_fd))
            _lock(folder_fd)  # so that one of two servers that start at the same time finds the other
            listener = _bind(path, folder_fd)
        finally:
            os.close(folder_fd)
    except FileNotFoundError:
        todo = "create the directory with mode 0700, or give another --socket"
        raise UsageError(f"cannot create a socket at {path}: {folder} does not exist; {todo}") from None
    except OSError as error:
        raise UsageError(
            f"cannot create a socket at {path}: {error.strerror or error}; give another --socket"
        ) from None
    made = os.stat(path).st_ino
    try:
        yield listener
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        listener.close()
        with contextlib.suppress(OSError):
            if os.stat(path).st_ino == made:
                os.unlink(path)


def _lock(folder: int) -> None:
    """Lock the directory. Raise OSError after `LOCK_SECONDS`, because any process that can read it can lock it."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, "another process keeps its directory locked") from None
        time.sleep(0.02)


def _check_folder(folder: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UsageError(f"{folder} is not yours: put the socket in a directory you own, such as ~/.readcache")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(f"others may write to {folder}: restrict it (chmod go-w), or give another --socket")


def _bind(path: str, folder: int) -> socket.socket:
    """Return a socket that listens at `path`. Raise OSError if that fails, and UsageError if the path is in use."""
    # Any process that finds the path can connect, so create the socket under another name and rename it at the end.
    _check_stale(path, folder)
    made = f"{path}.{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        umask = os.umask(0o177)
        try:
            listener.bind(short_name(made, folder))
        finally:
            os.umask(umask)
        listener.listen(BACKLOG)
        os.rename(made, path)
    except BaseException:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise
    return listener


def _check_stale(path: str, folder: int) -> None:
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise UsageError(f"{path} exists and is not a socket: give another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        try:
            other.connect(short_name(path, folder))
        except (ConnectionRefusedError, FileNotFoundError):
            return
    raise UsageError(f"a server already runs at {path}: use it, or give another --socket")
