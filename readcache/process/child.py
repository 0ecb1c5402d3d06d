"""Run a child with the environment, signals, streams and death that it would have without readcache. POSIX only."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
import warnings
from types import FrameType
from typing import Any, NoReturn

from readcache.core.model.limits import LARGEST_OUTPUT

# Seconds. After this time, or beyond `LARGEST_OUTPUT`, stop buffering and stream. A harness that runs into its timeout
# (30 s and up) has then seen the output.
LONGEST_BUFFERED = 20.0
_POLL = 0.05  # seconds between checks if bash has ended while one of its children keeps the output open
# Signals that harnesses send, including `timeout -s ALRM`.
_NAMES = ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "ALRM", "PIPE")
_FORWARDED = tuple(getattr(signal, f"SIG{name}") for name in _NAMES)
_PR_SET_PDEATHSIG = 1
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
BASH_NAME = "READCACHE_BASH"  # see shims/agent-command.sh
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")


class OutputLost(BaseException):
    """An output that does not reach its reader. Not an `Exception`, so that a record in progress is undone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


def bash(command: str, env: dict[str, str]) -> list[str]:
    """Return the arguments that start bash with `command`.

    If a shim gave in `env` the name that the harness used for bash, use this name, because bash's messages contain it.
    Otherwise, use `bash`. The variable stays in `env`: it tells the shim's script not to start readcache again, and the
    script removes it.
    """
    return [env.get(BASH_NAME, "") or "bash", "-c", command]


def become(words: list[str], env: dict[str, str]) -> NoReturn:
    """Replace this process with the program. Raise OSError if there is no such program."""
    undo_locale_coercion(env)
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(words[0], words, env)


def is_one_stream() -> bool:
    """Return True if stdout and stderr go to the same place, so that their order matters."""
    try:
        return os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return False


def undo_locale_coercion(env: dict[str, str]) -> None:
    """Undo the LC_CTYPE that Python sets when it starts in a C locale (PEP 538)."""
    if env.get("LC_CTYPE") not in _COERCED or env.get("LC_ALL"):
        return
    with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
        given = [entry for entry in file.read().split(b"\0") if entry.startswith(b"LC_CTYPE=")]
        if not given:
            del env["LC_CTYPE"]
        else:
            env["LC_CTYPE"] = os.fsdecode(given[0].partition(b"=")[2])


class Forwarding:
    """A context in which signals that would end this process go to the child that it starts. The child decides about
    them, and this process ends as the child does."""

    def __init__(self) -> None:
        self._pid = 0  # 0: no child yet, or it has ended
        self._exec_error = -1
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Forwarding:
        for number in _FORWARDED:
            is_ignored = signal.getsignal(number) is signal.SIG_IGN  # nohup, `&`: it stays ignored, in the child, too
            if not is_ignored or number in _IGNORED_BY_PYTHON:
                self._before[number] = signal.signal(number, self._forward)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def start(self, words: list[str], env: dict[str, str], *, stdout: int = 1, stderr: int = 2) -> None:
        """Start the child in this process group, and forward the signals that came earlier. On Linux, the child is
        killed when this process is, because without readcache bash would have been killed."""
        self._exec_error, end = os.pipe()  # for the error number if the child cannot become the program
        us, mask = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        try:
            self._pid = _fork()
            if not self._pid:
                try:
                    for fd, at in ((stdout, 1), (stderr, 2)):
                        if fd != at:
                            os.dup2(fd, at)
                    for number in self._before:  # the child must not have the handlers of this process
                        signal.signal(number, signal.SIG_DFL)
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                    _die_with(us)
                    become(words, env)
                except Exception as error:
                    os.write(end, b"%d" % (getattr(error, "errno", None) or errno.EIO))
                finally:
                    os._exit(127)
        finally:
            os.close(end)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number in self._early:
            os.kill(self._pid, number)

    def wait(self) -> int:
        """Wait for the child, and return its exit status as subprocess does: negative for a death by signal. Raise
        OSError if the program could not be started."""
        _, status = os.waitpid(self._pid, 0)
        return self._ended(status)

    def wait_no_longer(self) -> int | None:
        """Return the child's exit status as `wait` does; None while it lives."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        return self._ended(status) if pid else None

    def wait_until(self, deadline: float) -> int | None:
        """Return the child's exit status as `wait` does; None if it lives at `deadline` (monotonic clock, seconds)."""
        pause = 0.0001
        while (status := self.wait_no_longer()) is None and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(2 * pause, _POLL)
        return status

    def _ended(self, status: int) -> int:
        self._pid = 0
        with open(self._exec_error, "rb") as file:
            number = file.read()
        if number:
            raise OSError(int(number), os.strerror(int(number)))
        return os.waitstatus_to_exitcode(status)

    def _forward(self, number: int, _: FrameType | None) -> None:
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return  # typed at the terminal: the child, in the same group, got it, too
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)
        else:
            self._early.append(number)


def _fork() -> int:
    """Fork like `os.fork`, without Python's warning about threads. The child does little more than exec."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _die_with(parent: int) -> None:
    """Have this process killed when its parent's thread that forked it ends, if the system can do that."""
    with contextlib.suppress(Exception):
        # `ctypes` takes 3 ms to import, and `_ctypes` a tenth of that.
        from _ctypes import call_function, dlopen, dlsym

        here: Any = None  # typeshed does not know None, which means the libraries that are already loaded
        call_function(dlsym(dlopen(here, 0), "prctl"), (_PR_SET_PDEATHSIG, int(signal.SIGKILL)))
    if os.getppid() != parent:  # the parent ended in the meantime
        os.kill(os.getpid(), signal.SIGKILL)


def _in_foreground() -> bool:
    with contextlib.suppress(OSError), open("/dev/tty", "rb", buffering=0) as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False


def collect(pipe: int, child: Forwarding) -> tuple[bytes | None, int]:
    """Return the bytes that the child printed into `pipe`, and its exit status.

    Return None instead of the bytes if they were streamed: the output was too long, took too long, or another process
    kept printing after the child's end.
    """
    buffered, is_passed_on = bytearray(), False  # `buffered`: output that is not printed yet
    status, deadline = None, time.monotonic() + LONGEST_BUFFERED
    try:
        while True:
            if select.select([pipe], [], [], _POLL if status is None else 0)[0]:
                chunk = os.read(pipe, 1 << 16)
                if not chunk:  # the program has ended, or closed its stdout and may run much longer
                    if status is None and not is_passed_on:
                        status = child.wait_until(deadline)
                        if is_passed_on := status is None:
                            _arrives(buffered)
                    break
                buffered += chunk
            elif status is None:
                status = child.wait_no_longer()
            else:  # a background process keeps the other end open
                is_passed_on = True
                if _arrives(buffered):
                    _leave_copying(pipe)
                break
            if is_passed_on or len(buffered) > LARGEST_OUTPUT or time.monotonic() > deadline:
                is_passed_on = True
                if not _arrives(buffered):
                    break
                buffered = bytearray()
    finally:
        os.close(pipe)
    return None if is_passed_on else bytes(buffered), child.wait() if status is None else status


def _arrives(data: bytes | bytearray) -> bool:
    """Print the data. Return False if the reader is gone."""
    # Ignore the SIGPIPE of this write. Programs that print into the pipe must get their own, as without readcache.
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        show(data)
    except OutputLost:
        return False
    finally:
        signal.signal(signal.SIGPIPE, before)
    return True


def _leave_copying(pipe: int) -> None:
    """Start a process that prints the rest of the output. This process ends when bash has ended, as bash would."""
    if _fork():
        return
    try:
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        while (chunk := os.read(pipe, 1 << 16)) and _arrives(chunk):
            pass
    finally:
        os._exit(0)


def show(data: bytes | bytearray) -> None:
    """Write all of the data to stdout. Raise OutputLost if that fails."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(1, left) :]
        except BlockingIOError:
            select.select([], [1], [])
        except OSError as error:
            raise OutputLost(error) from error


def end_like(status: int) -> int:
    """Die by the signal that a negative status names. Otherwise, or if the signal does not kill, return an exit
    status."""
    if status >= 0:
        return status
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status


def end_unread(lost: OutputLost) -> int:
    """End like a program that cannot write its output: die by SIGPIPE, or return 1 for other errors, such as a full
    disk."""
    if lost.error.errno == errno.EPIPE:
        return end_like(-signal.SIGPIPE)
    with contextlib.suppress(OSError):
        os.write(2, f"readcache: cannot write the output: {lost.error.strerror}\n".encode())
    return 1
