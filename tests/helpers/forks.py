"""`python -m readcache …` without the start of a Python: forks of a process that has imported the package.

A fork has streams, signals, a process id and a death of its own, as a program that was started. Only the start is
missing: the quick suite has hundreds of such processes, and a start costs more than all that they do.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import readcache
from readcache.cli.start import start_command_line

ROOT = Path(__file__).resolve().parents[2]
CAN_FORK = hasattr(os, "pidfd_open")
_MORE_THAN_ARE_OPEN = 200
# What Python looks at when it starts, and a fork has of the process that it is a fork of.
_OF_THE_START = ("PYTHON", "LC_", "LANG")


class Process(subprocess.Popen[bytes]):
    """After a test that failed, nobody waits for it."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is not None and self.poll() is None:
            os.kill(-self.pid if os.getpgid(self.pid) == self.pid else self.pid, signal.SIGKILL)
        super().__exit__(kind, value, trace)


class _Forked:
    """The process that is forked: the other end of `requests`, and the variables that it was started with."""

    requests: socket.socket | None = None
    start: Mapping[str, str] = {}


def start(words: Sequence[str], **options: Any) -> Process:
    """Starts `python -m readcache WORDS`, with the options of Popen. While `forking` is entered it is forked, unless it
    is to start in a way of its own."""
    has_a_way = "preexec_fn" in options or _of_the_start(options.get("env") or os.environ) != _Forked.start
    if _Forked.requests is None or has_a_way:
        return Process([sys.executable, "-m", "readcache", *words], **options)
    return _Fork(words, **options)


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """While it is entered, `start` forks."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", __name__, str(theirs.fileno())]
    with ours, subprocess.Popen(words, pass_fds=[theirs.fileno()], env=env, cwd=ROOT, stdin=subprocess.DEVNULL):
        theirs.close()
        ours.recv(1)  # wait for its imports here, so that no test pays for them
        _Forked.requests, _Forked.start = ours, _of_the_start(env)
        yield
        _Forked.requests = None
        ours.close()


def _of_the_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_OF_THE_START)}


class _Fork(Process):
    """A process that somebody else forks, and waits for. `_told`: its id and, when it has ended, its status."""

    def _execute_child(self, words: list[str], *given: Any) -> None:
        passed, cwd, env = given[3:6]
        ends = given[9:15]  # of each stream the child's and ours
        streams = [fd if fd != -1 else number for number, fd in enumerate((ends[0], ends[3], ends[5]))]
        request = {"words": words, "passed": sorted(passed), "leads": given[20]}
        request |= {"cwd": os.fspath(cwd or os.getcwd()), "env": dict(os.environ if env is None else env)}
        told, report = os.pipe()
        self._told = open(told, "rb", buffering=0)  # noqa: SIM115 - it is read when the process has ended
        try:
            assert _Forked.requests is not None
            socket.send_fds(_Forked.requests, [json.dumps(request).encode()], [report, *streams, *sorted(passed)])
        finally:
            os.close(report)
        self.pid = int(self._told.readline())
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]  # typeshed has only what is public

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self._handle_exitstatus(self._try_wait(0)[1])  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if flags and not select.select([self._told], [], [], 0)[0]:
            return 0, 0
        with self._told:
            return self.pid, int(self._told.readline())


# ------------------------------------------------------------ the process that is forked


def _serve(requests: socket.socket) -> None:
    """Forks for each request, until there is nobody to ask for more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # typed at the terminal: pytest ends, and then we do
    for module in pkgutil.walk_packages(readcache.__path__, "readcache."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of a host that is not installed
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    requests.send(b"!")
    running: dict[int, tuple[int, int]] = {}
    while True:
        ready = select.select([requests.fileno(), *running], [], [])[0]
        for each in running.keys() & set(ready):
            pid, report = running.pop(each)
            _tell(report, os.waitpid(pid, 0)[1])
            os.close(report)
            os.close(each)
        if requests.fileno() not in ready:
            continue
        request, fds, _, _ = socket.recv_fds(requests, 1 << 20, 64)
        if not request:
            return
        report, *given = fds
        pid = os.fork()
        if not pid:
            _become(json.loads(request), given)
        for fd in given:
            os.close(fd)
        _tell(report, pid)
        running[os.pidfd_open(pid)] = pid, report


def _tell(report: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits for this one
        os.write(report, b"%d\n" % number)


def _become(request: Mapping[str, Any], given: Sequence[int]) -> NoReturn:
    """Does what the command line says, and ends as Python ends."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _renumber([0, 1, 2, *request["passed"]], given)
        if request["leads"]:
            os.setsid()
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = [str(ROOT / "readcache/__main__.py"), *request["words"]]
        status = start_command_line()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(_end(status))


def _renumber(numbers: Sequence[int], given: Sequence[int]) -> None:
    """Gives the descriptors these numbers, and closes all others."""
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, _MORE_THAN_ARE_OPEN) for fd in given]
    os.closerange(0, _MORE_THAN_ARE_OPEN)
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number)
    os.closerange(_MORE_THAN_ARE_OPEN, 2 * _MORE_THAN_ARE_OPEN)


def _end(status: int) -> int:
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        return 120
    return status


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
