"""The servers of one store, whatever their version, and how they are ended."""

from __future__ import annotations

import contextlib
import os
import signal

from readcache import UsageError
from readcache.serve.address import LOCK, NoServer, open_folder, peer, reach, take_lock

PATIENCE = 1.0  # seconds for a server to take a connection, and to say how it is


def socket_paths_of_all_versions(path: str) -> list[str]:
    """Where servers of the same store as the one at `path` listen or have listened. Empty if the directory is not
    safe."""
    folder, name = os.path.split(path)
    store = name[name.rindex("-") :]
    return [path for path in socket_paths_in(folder) if path.endswith(store)]


def socket_paths_in(folder: str) -> list[str]:
    """Where servers of any store listen or have listened. Empty if the directory is not there, or not safe."""
    names: list[str] = []
    with contextlib.suppress(OSError, NoServer):
        folder_fd = open_folder(folder)
        names = os.listdir(folder_fd)
        os.close(folder_fd)
    return sorted({os.path.join(folder, name.removesuffix(LOCK)) for name in names})


def version_at(path: str) -> str:
    """The version of the server that listens at `path`."""
    return os.path.basename(path).rpartition("-")[0]


def answers(path: str) -> bool:
    """True where a process of this user takes a connection."""
    try:
        reach(path, PATIENCE).close()
    except NoServer:
        return False
    return True


def tell_to_end(path: str) -> int | None:
    """Sends a SIGTERM to the server at `path`: its process id. None where there is none. UsageError."""
    with contextlib.suppress(NoServer, ProcessLookupError), contextlib.closing(reach(path, PATIENCE)) as connection:
        pid, _ = peer(connection)
        if pid is None:
            raise UsageError("this system does not say which process listens on a socket: stop it by its pid")
        os.kill(pid, signal.SIGTERM)
        return pid
    return None


def kill(path: str) -> None:
    """Ends the server at `path`, which takes connections and does not answer: those that wait for it go on."""
    with contextlib.suppress(NoServer, ProcessLookupError), contextlib.closing(reach(path, PATIENCE)) as connection:
        pid, _ = peer(connection)
        if pid not in (None, os.getpid()):
            os.kill(pid, signal.SIGKILL)


def is_there(path: str) -> bool:
    """False when a server has ended: it holds its lock until it has logged all that it was told. OSError."""
    lock = take_lock(path)
    if lock is None:
        return True
    try:
        return answers(path)
    finally:
        os.close(lock)


def take_away(path: str) -> None:
    """Removes the socket and the lock at `path`, if there is no server. OSError."""
    lock = take_lock(path)
    if lock is None:
        return
    try:
        if not answers(path):
            for left in (path, path + LOCK):  # the lock last: the next server makes another one
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(left)
    finally:
        os.close(lock)
