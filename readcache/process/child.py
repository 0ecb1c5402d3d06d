"""A child whose environment, signals, streams and death are those it would have without us around it. POSIX only."""

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

# Seconds. Beyond this or `LARGEST_OUTPUT`, stop buffering and stream, so that a harness that runs out of patience (30 s
# and up) has seen the output.
LONGEST_BUFFERED = 20.0
_POLL = 0.05  # seconds between looks whether bash has ended while one of its children keeps the output open
# Those that harnesses send, `timeout -s ALRM` too.
_NAMES = ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "ALRM", "PIPE")
_FORWARDED = tuple(getattr(signal, f"SIG{name}") for name in _NAMES)
_PR_SET_PDEATHSIG = 1
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
BASH_NAME = "READCACHE_BASH"  # see shims/agent-command.sh
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")


class OutputLost(BaseException):
    """What we print does not arrive. Not an `Exception`, so that whatever was about to be recorded is undone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


def bash(command: str, env: dict[str, str]) -> list[str]:
    """The words that start bash with `command`: under the name that the harness used, where a shim tells it in `env`
    (it stands in bash's messages), else as `bash`. It stays in `env`, by which that script knows that it is not to
    start us again; it takes it out itself."""
    return [env.get(BASH_NAME, "") or "bash", "-c", command]


def become(words: list[str], env: dict[str, str]) -> NoReturn:
    """This process becomes the program. OSError if there is no such program."""
    undo_locale_coercion(env)
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(words[0], words, env)


def is_one_stream() -> bool:
    """True if stdout and stderr go to the same place, so that their order matters."""
    try:
        return os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return False


def undo_locale_coercion(env: dict[str, str]) -> None:
    """Takes back the LC_CTYPE that Python sets at its start in a C locale (PEP 538)."""
    if env.get("LC_CTYPE") not in _COERCED or env.get("LC_ALL"):
        return
    with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
        given = [entry for entry in file.read().split(b"\0") if entry.startswith(b"LC_CTYPE=")]
        if not given:
            del env["LC_CTYPE"]
        else:
            env["LC_CTYPE"] = os.fsdecode(given[0].partition(b"=")[2])


class Forwarding:
    """While it is entered, signals that end us go to the child that it starts: the child decides, and we follow it."""

    def __init__(self) -> None:
        self._pid = 0  # there is no child, or none any more
        self._exec_error = -1
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Forwarding:
        for number in _FORWARDED:
            is_ignored = signal.getsignal(number) is signal.SIG_IGN  # nohup, `&`: it stays so, for the child too
            if not is_ignored or number in _IGNORED_BY_PYTHON:
                self._before[number] = signal.signal(number, self._forward)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def start(self, words: list[str], env: dict[str, str], *, stdout: int = 1, stderr: int = 2) -> None:
        """Starts the child in our process group; signals that came before are passed on now. On Linux it is killed when
        we are, as bash would have been in our place."""
        self._exec_error, end = os.pipe()  # for the number of the error that keeps it from becoming the program
        us, mask = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        try:
            self._pid = _fork()
            if not self._pid:
                try:
                    for fd, at in ((stdout, 1), (stderr, 2)):
                        if fd != at:
                            os.dup2(fd, at)
                    for number in self._before:  # our handlers are not the child's
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
        """The child's exit status as subprocess gives it: negative for a death by signal. OSError when there is no
        program of that name."""
        _, status = os.waitpid(self._pid, 0)
        return self._ended(status)

    def wait_no_longer(self) -> int | None:
        """The child's exit status as `wait` gives it; None while it lives."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        return self._ended(status) if pid else None

    def wait_until(self, deadline: float) -> int | None:
        """The child's exit status as `wait` gives it; None if it lives at this time of the monotonic clock."""
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
            return  # typed at the terminal: the child, in our group, got it as well
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)
        else:
            self._early.append(number)


def _fork() -> int:
    """As `os.fork`, without Python's warning where there are threads: the child does little more than to exec."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _die_with(parent: int) -> None:
    """This process is killed when its parent's thread that forked it ends, where the system can do that. `ctypes` takes
    3 ms to import, and what it is made from a tenth of that."""
    with contextlib.suppress(Exception):
        from _ctypes import call_function, dlopen, dlsym

        here: Any = None  # typeshed knows of no None, which stands for what is loaded already
        call_function(dlsym(dlopen(here, 0), "prctl"), (_PR_SET_PDEATHSIG, int(signal.SIGKILL)))
    if os.getppid() != parent:  # it ended meanwhile
        os.kill(os.getpid(), signal.SIGKILL)


def _in_foreground() -> bool:
    with contextlib.suppress(OSError), open("/dev/tty", "rb", buffering=0) as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False


def collect(pipe: int, child: Forwarding) -> tuple[bytes | None, int]:
    """(what the child printed into `pipe`, its exit status). None instead of the output if it was streamed: it was too
    long, took too long, or another process kept printing after the child's end."""
    buffered, is_passed_on = bytearray(), False  # the first: what is not printed yet
    status, deadline = None, time.monotonic() + LONGEST_BUFFERED
    try:
        while True:
            if select.select([pipe], [], [], _POLL if status is None else 0)[0]:
                chunk = os.read(pipe, 1 << 16)
                if not chunk:  # the program has ended, or closed its stdout and may go on for long
                    if status is None and not is_passed_on:
                        status = child.wait_until(deadline)
                        if is_passed_on := status is None:
                            _arrives(buffered)
                    break
                buffered += chunk
            elif status is None:
                status = child.wait_no_longer()
            else:  # a process in the background has the other end
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
    """Prints; False if the reader is gone. Who prints into our pipe is to learn it by SIGPIPE, as without us; the one
    that we get for it is not for them."""
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        show(data)
    except OutputLost:
        return False
    finally:
        signal.signal(signal.SIGPIPE, before)
    return True


def _leave_copying(pipe: int) -> None:
    """A process of its own passes on what is still to come; we end when bash ended, as bash would have."""
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
    """Writes all of it to stdout. OutputLost when that fails."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(1, left) :]
        except BlockingIOError:
            select.select([], [1], [])
        except OSError as error:
            raise OutputLost(error) from error


def end_like(status: int) -> int:
    """Dies by the signal that a negative status names; else, or when it does not kill, an exit status."""
    if status >= 0:
        return status
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status


def end_unread(lost: OutputLost) -> int:
    """End like a program that cannot write its output: die by SIGPIPE, or fail if the disk is full."""
    if lost.error.errno == errno.EPIPE:
        return end_like(-signal.SIGPIPE)
    with contextlib.suppress(OSError):
        os.write(2, f"readcache: cannot write the output: {lost.error.strerror}\n".encode())
    return 1
