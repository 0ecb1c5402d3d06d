"""Find, reach and start the server of a user and a store.

A client lives for one tool call, and a missing server costs it only speed. So nothing here waits, and slow imports are
avoided. The server keeps a lock while it lives. A client that finds no server takes the lock and passes it to the
server that it starts, so that two clients never start one each.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import stat
import sys
import time

import readcache
from readcache.core.model.errors import UsageError

LOCK = ".lock"  # at the end of a socket's path: the file that its server has locked
LOCK_FD = 3  # the file descriptor on which a started server gets its lock
SOON = 2.0  # seconds after a start in which no other server is started, even if the first one died
ASIDE = 30  # seconds in which no client asks a server that kept a client waiting
_LONGEST = 100  # bytes of a socket's path that every system accepts
_ROOM_FOR_CREDENTIALS = 12  # struct ucred: three numbers of 32 bits
_FNV_START, _FNV_FACTOR = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits: short to write in C, too
# The server gets only these variables: they say where files are, and how long to keep them. The environment of the
# first client has others, including secrets.
_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "READCACHE_KEEP", "TMPDIR", "XDG_STATE_HOME")
_BOOT = "import sys; sys.path += sys.argv.pop(1).split(chr(58)); from readcache.cli.main import main; sys.exit(main())"


class NoServer(Exception):
    """Raised if there is no server, or none that can be trusted."""


def socket_path(state: str, store: str) -> str:
    """Return the path at which the server for `store`, an absolute path, listens.

    It is below the state directory, and differs for each version and store. So the server of an old version gets no
    more clients, and ends.
    """
    return os.path.join(state, "serve", f"{readcache.__version__}-{_digest(os.fsencode(store)):016x}")


def server_paths(store: str) -> tuple[str, str]:
    """Return (the path at which the server of a store listens, the store's file).

    `store`: the store as the user named it, or "" for the default store. Raise UsageError if it is not usable, or if it
    is on a server itself.
    """
    from readcache.process.state import default_store, state_directory, store_file

    file = store_file(store or default_store())
    if file is None:
        raise UsageError("a store on a server does not need a readcache server on this machine")
    return socket_path(state_directory(), file), file


def socket_store(path: str) -> str:
    """Return the path of the default store for a server at the socket `path`. Raise UsageError if there is no home
    directory for it.

    The store belongs to this socket only, because the clients may be sandboxes, which can read and write every
    conversation in it.
    """
    from readcache.process.state import SOCKET_STORE, state_directory

    digest = _digest(os.fsencode(os.path.realpath(os.path.expanduser(path))))
    return os.path.join(state_directory(), f"{SOCKET_STORE}{digest:016x}.db")


def reach(path: str, seconds: float) -> _socket.socket:
    """Return a connection to the server at `path`. Each operation on it takes at most `seconds`. Raise NoServer if no
    trusted server answers."""
    try:
        folder = open_folder(os.path.dirname(path))
    except OSError as error:
        raise NoServer(f"{os.path.dirname(path)}: {error.strerror}") from None
    try:
        name = os.path.basename(path)
        if not stat.S_ISSOCK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise NoServer(f"{name} exists and is not a socket")
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            connection.settimeout(seconds)
            connection.connect(short_name(path, folder))
            if peer(connection)[1] not in (None, os.fstat(folder).st_uid):
                raise NoServer(f"{path}: another user's process listens there")
        except BaseException:
            connection.close()
            raise
        return connection
    except OSError as error:
        raise NoServer(f"{path}: {error.strerror or error}") from None
    finally:
        os.close(folder)


def is_left_aside(path: str) -> bool:
    """Return True while clients should not ask the server at `path`. Raise OSError if its socket cannot be read."""
    return 0 < os.stat(path, follow_symlinks=False).st_atime - time.time() <= ASIDE


def leave_aside(path: str) -> None:
    """Keep other clients from asking the server at `path`, which hangs, for `ASIDE` seconds. Raise OSError on failure.

    The socket's access time says until when. Clients check the socket anyway, and the next server has a new socket.
    """
    # Keep the modification time: by it a server knows that the socket is still its own.
    found = os.stat(path, follow_symlinks=False)
    until = time.time_ns() + ASIDE * 10**9
    os.utime(path, ns=(until, found.st_mtime_ns), follow_symlinks=False)


def open_folder(path: str) -> int:
    """Return a descriptor of a socket's directory. Raise OSError if it cannot be opened, and NoServer if it belongs to
    another user or others can write to it."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(folder)
        raise NoServer(f"{path} belongs to another user, or others may write to it: restrict it (chmod go-w)")
    return folder


def short_name(path: str, folder: int) -> str:
    """Return a name with which `path` can be bound or connected, even if it is too long for a socket. The name works
    while `folder`, the descriptor of its directory, is open."""
    through = f"/proc/self/fd/{folder}"
    if len(os.fsencode(path)) > _LONGEST and os.path.isdir(through):
        return os.path.join(through, os.path.basename(path))
    return path


def peer(connection: _socket.socket) -> tuple[int | None, int | None]:
    """Return (process ID, user ID) of the other end. Both are None if the system does not report them."""
    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return None, None
    found = connection.getsockopt(_socket.SOL_SOCKET, option, _ROOM_FOR_CREDENTIALS)
    return int.from_bytes(found[:4], sys.byteorder), int.from_bytes(found[4:8], sys.byteorder)


def is_ours(connection: _socket.socket) -> bool:
    """Return False if the other end is a process of another user, except root. Return True if the system does not say:
    the socket's mode keeps other users out on every system."""
    return peer(connection)[1] in (None, os.geteuid(), 0)


def take_lock(path: str) -> int | None:
    """Return a descriptor that has locked the lock file of the server at `path`.

    Return None if a server has the lock, or if the file was removed in the meantime. Raise OSError if the file cannot
    be opened.
    """
    lock = os.open(path + LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(path + LOCK)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None


def inherited_lock(path: str) -> int | None:
    """Return the descriptor of the lock that this process inherited, or None if it is not the lock of the server at
    `path`."""
    try:
        if os.path.samestat(os.fstat(LOCK_FD), os.stat(path + LOCK)):
            fcntl.flock(LOCK_FD, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.set_inheritable(LOCK_FD, False)
            return LOCK_FD
    except OSError:
        pass
    return None


def start(path: str, store: str) -> bool:
    """Start a server at `path` for `store`, an absolute path, unless one is running or was started less than `SOON`
    seconds ago. Do not wait until it answers. Return False if nothing was started."""
    try:
        for directory in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):  # `mode` is for the last one
            os.makedirs(directory, mode=0o700, exist_ok=True)
        os.close(open_folder(os.path.dirname(path)))
        lock = take_lock(path)
        if lock is None:
            return False
        try:
            before = os.fstat(lock)
            if before.st_size and abs(time.time() - before.st_mtime) < SOON:
                return False
            os.pwrite(lock, b"started\n", 0)
            _start_apart(server_words(store), lock)
        finally:
            os.close(lock)
    except (OSError, NoServer):
        return False
    return True


def server_words(store: str) -> list[str]:
    """Return the command line that starts the server. The server finds its lock on `LOCK_FD`."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(readcache.__file__)))
    return [sys.executable, "-I", "-c", _BOOT, packages, "serve", "--on-demand", "--store", store]


def _start_apart(words: list[str], lock: int) -> None:
    """Start a detached process, without a terminal, that inherits only the lock."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        lock = fcntl.fcntl(lock, fcntl.F_DUPFD, LOCK_FD + 1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.dup2(lock, LOCK_FD)
        os.closerange(LOCK_FD + 1, os.sysconf("SC_OPEN_MAX"))
        os.execve(words[0], words, {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ})
    finally:
        os._exit(127)


def _digest(data: bytes) -> int:
    found = _FNV_START
    for byte in data:
        found = (found ^ byte) * _FNV_FACTOR & 0xFFFFFFFFFFFFFFFF
    return found
