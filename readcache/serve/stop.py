"""Find and stop the servers of one store, in all versions."""

from __future__ import annotations

import contextlib
import os
import signal

from readcache import UsageError
from readcache.serve.address import LOCK, NoServer, open_folder, peer, reach, take_lock

PATIENCE = 1.0  # seconds for a server to accept a connection, and to report its status


def socket_paths_of_all_versions(path: str) -> list[str]:
    """Return the paths where servers of the same store as the server at `path` listen or have listened. Return an empty
    list if the directory is missing or not safe."""
    folder, name = os.path.split(path)
    store = name[name.rindex("-") :]
    return [path for path in socket_paths_in(folder) if path.endswith(store)]


def socket_paths_in(folder: str) -> list[str]:
    """Return the paths where servers of any store listen or have listened. Return an empty list if the directory is
    missing or not safe."""
    names: list[str] = []
    with contextlib.suppress(OSError, NoServer):
        folder_fd = open_folder(folder)
        names = os.listdir(folder_fd)
        os.close(folder_fd)
    return sorted({os.path.join(folder, name.removesuffix(LOCK)) for name in names})


def version_at(path: str) -> str:
    """Return the version of the server that listens at `path`."""
    return os.path.basename(path).rpartition("-")[0]


def answers(path: str) -> bool:
    """Return True if a process of this user accepts a connection at `path`."""
    try:
        reach(path, PATIENCE).close()
    except NoServer:
        return False
    return True


def send_signal(path: str, number: signal.Signals) -> int | None:
    """Send a signal to the server at `path`. Return its process ID, or None if there is no server. Raise UsageError if
    the system does not report the process."""
    with contextlib.suppress(NoServer, ProcessLookupError), contextlib.closing(reach(path, PATIENCE)) as connection:
        pid, _ = peer(connection)
        if pid is None:
            raise UsageError("this system does not say which process listens on a socket: stop it by its pid")
        os.kill(pid, number)
        return pid
    return None


def is_there(path: str, *, removes: bool = False) -> bool:
    """Return False if the server at `path` has ended. `removes`: then remove its socket and its lock file. Raise
    OSError if that fails, or if the lock file cannot be opened."""
    # A server keeps its lock until it has logged everything that clients reported.
    lock = take_lock(path)
    if lock is None:
        return True
    try:
        is_there = answers(path)
        if removes and not is_there:
            for left in (path, path + LOCK):  # the lock last: the next server creates a new one
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(left)
        return is_there
    finally:
        os.close(lock)
