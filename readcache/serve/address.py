"""Finds, reaches and starts the server of a user and a store.

A client lives for one tool call, and a missing server costs it only speed. So nothing here waits, and slow imports are
avoided. The server holds a lock while it lives. A client that finds no server takes the lock and passes it to the
server that it starts, so that no two start at once.
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
LOCK_FD = 3  # on which a server that was started gets its lock
SOON = 2.0  # seconds; a server that died so soon after its start is not started again at once
ASIDE = 30  # seconds in which no client asks a server that has let one wait
_LONGEST = 100  # bytes of a socket's path that every system takes
_ROOM_FOR_CREDENTIALS = 12  # struct ucred: three numbers of 32 bits
_FNV_START, _FNV_FACTOR = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits: short to write in C, too
# Of the variables those that say where things are, and how long they stay. Whoever asks first has others, secrets among
# them.
_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "READCACHE_KEEP", "TMPDIR", "XDG_STATE_HOME")
_BOOT = "import sys; sys.path += sys.argv.pop(1).split(chr(58)); from readcache.cli.main import main; sys.exit(main())"


class NoServer(Exception):
    """There is none, or none that can be trusted."""


def socket_path(state: str, store: str) -> str:
    """Where the server for `store`, an absolute path, listens: one name for each version and store, below the state
    directory. An old version's server has another name, gets no more clients, and ends."""
    return os.path.join(state, "serve", f"{readcache.__version__}-{_digest(os.fsencode(store)):016x}")


def server_paths(store: str) -> tuple[str, str]:
    """(where the server of a store listens, the store's file). `store`: as it was named, "" for the default one.
    UsageError, also for a store that is on a server itself."""
    from readcache.process.state import default_store, state_directory, store_file

    file = store_file(store or default_store())
    if file is None:
        raise UsageError("a store on a server does not need a readcache server on this machine")
    return socket_path(state_directory(), file), file


def socket_store(path: str) -> str:
    """The default store of a server at a socket. Its clients may be sandboxes, which can read and write every
    conversation in the store, so it has no others. UsageError when there is no home directory to put it into."""
    from readcache.process.state import SOCKET_STORE, state_directory

    digest = _digest(os.fsencode(os.path.realpath(os.path.expanduser(path))))
    return os.path.join(state_directory(), f"{SOCKET_STORE}{digest:016x}.db")


def reach(path: str, seconds: float) -> _socket.socket:
    """A connection to the server at `path`, on which nothing takes longer than `seconds`. NoServer."""
    try:
        folder = open_folder(os.path.dirname(path))
    except OSError as error:
        raise NoServer(f"{os.path.dirname(path)}: {error.strerror}") from None
    try:
        name = os.path.basename(path)
        _require_socket(name, folder)
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
    """True while the server at `path` is not to be asked. OSError."""
    return 0 < os.stat(path, follow_symlinks=False).st_atime - time.time() <= ASIDE


def leave_aside(path: str) -> None:
    """The server at `path` hangs: tell other clients not to ask it for a while. OSError.

    The socket's time of access says until when: clients look at the socket anyway, its next server has a new one, and
    by its time of change a server knows that the socket is still its own.
    """
    found = os.stat(path, follow_symlinks=False)
    until = time.time_ns() + ASIDE * 10**9
    os.utime(path, ns=(until, found.st_mtime_ns), follow_symlinks=False)


def open_folder(path: str) -> int:
    """A descriptor of a socket's directory. OSError; NoServer if others can write to it."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(folder)
        raise NoServer(f"{path} belongs to another user, or others may write to it: restrict it (chmod go-w)")
    return folder


def short_name(path: str, folder: int) -> str:
    """A name with which `path` can be bound or connected, even if it is too long for a socket, while its directory is
    open."""
    through = f"/proc/self/fd/{folder}"
    if len(os.fsencode(path)) > _LONGEST and os.path.isdir(through):
        return os.path.join(through, os.path.basename(path))
    return path


def peer(connection: _socket.socket) -> tuple[int | None, int | None]:
    """(process id, user id) of the other end; None where the system does not tell."""
    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return None, None
    found = connection.getsockopt(_socket.SOL_SOCKET, option, _ROOM_FOR_CREDENTIALS)
    return int.from_bytes(found[:4], sys.byteorder), int.from_bytes(found[4:8], sys.byteorder)


def is_ours(connection: _socket.socket) -> bool:
    """False for another user's process, where the system tells; the socket's mode keeps those out everywhere."""
    return peer(connection)[1] in (None, os.geteuid(), 0)


def take_lock(path: str) -> int | None:
    """A descriptor that holds the lock of the server at `path`; None where a server has it, or the file was taken away
    in this moment. OSError."""
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
    """The descriptor of the lock that this process was started with, if it is that of the server at `path`."""
    try:
        if os.path.samestat(os.fstat(LOCK_FD), os.stat(path + LOCK)):
            fcntl.flock(LOCK_FD, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.set_inheritable(LOCK_FD, False)
            return LOCK_FD
    except OSError:
        pass
    return None


def start(path: str, store: str) -> bool:
    """Starts a server at `path` for `store`, an absolute path, unless there is one, or one has just died. Does not wait
    until it answers. False where nothing was started."""
    try:
        for directory in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):  # the mode is the last one's
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
    """The words that start the server; it finds its lock on `LOCK_FD`."""
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


def _require_socket(name: str, folder: int) -> None:
    """OSError; NoServer for what is not a socket."""
    if not stat.S_ISSOCK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise NoServer(f"{name} exists and is not a socket")


def _digest(data: bytes) -> int:
    found = _FNV_START
    for byte in data:
        found = (found ^ byte) * _FNV_FACTOR & 0xFFFFFFFFFFFFFFFF
    return found
