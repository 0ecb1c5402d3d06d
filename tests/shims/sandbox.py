"""A directory of shims, a sandbox of files, and a harness that starts shells the ways harnesses do."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from readcache import Session
from readcache.cli import shim_files
from shims.build import CannotBuild, build
from tests.helpers.files import WATCHDOG

ROOT = Path(__file__).resolve().parents[2]
LINES = "".join(f"line {n} of the file that was shown\n" for n in range(1, 61))
OTHER = "".join(f"{n}: some other words\n" for n in range(1, 41))
STDOUTS = ("pipe", "merged", "pty", "socketpair", "file")


@dataclass
class Ran:
    """What came of a command: its output, stderr (empty where it goes with stdout), status, and every file."""

    out: bytes
    err: bytes
    status: int
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass
class Sandbox:
    """`place` holds the files, `shims` the shims; `store` knows that the agent was shown `f` when `primed`."""

    directory: Path
    shims: Path
    store: Path
    primed: Path
    has_client: bool = False  # compiled shims ask a server

    def reset(self) -> None:
        """The files as they were at first, and a store in which `f` was shown."""
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "sub").mkdir(parents=True)
        (self.directory / "f").write_text(LINES)
        (self.directory / "sub" / "g").write_text(OTHER)
        (self.directory / "script").write_text("#!/bin/sh\ncat f\nhead -3 f >out.script\n")
        (self.directory / "script").chmod(0o755)
        (self.directory / "Makefile").write_text("all: out.make\n\tcat f\nout.make: f\n\tsed 's/line/LINE/' f > $@\n")
        whole = self.store.with_name("whole.db")
        shutil.copy(self.primed, whole)
        for path in self.store.parent.glob(f"{self.store.name}-*"):
            path.unlink(missing_ok=True)  # a server may just be closing the one before
        whole.replace(self.store)  # at once: a server that folds the last call's log opens what is at this path

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.directory)): path.read_bytes()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file()
        }

    def env(self, **more: str) -> dict[str, str]:
        """A small environment without anything of readcache in it, and `more`."""
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        more = ({} if self.has_client else {"READCACHE_SERVER": "off"}) | more
        return {"PATH": path, "HOME": str(self.directory.parent), "LC_ALL": "C.UTF-8", "TERM": "dumb"} | more

    def readcache(self, **more: str) -> dict[str, str]:
        """The same with what a harness sets whose agent has shims."""
        return self.env(**{"READCACHE_SESSION": "s", "READCACHE_STORE": str(self.store), "READCACHE": "on"} | more)

    def by_bash_env(self, **more: str) -> dict[str, str]:
        return self.readcache(BASH_ENV=str(self.shims / "agent-shell.sh"), **more)

    def run(self, words: Sequence[str], env: Mapping[str, str], stdout: str = "pipe") -> Ran:
        """Starts the shell with fresh files, gathers everything that can be seen of it."""
        self.reset()
        ran = start(words, env, stdout, self.directory)
        ran.files = self.files()
        return ran


def start(words: Sequence[str], env: Mapping[str, str], stdout: str, cwd: Path) -> Ran:
    """Runs `words` as a harness does whose stdout is of that kind."""
    read, write = _STDOUTS[stdout]()
    alone = stdout in ("pipe", "file", "socketpair")
    with open(read, "rb", buffering=0) as mine:
        try:
            process = subprocess.Popen(
                words,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=write,
                stderr=subprocess.PIPE if alone else subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            os.close(write)
        with process:
            if stdout == "file":
                err = process.communicate(timeout=WATCHDOG)[1]
                out = mine.read()
            else:
                out = b"".join(_chunks(mine))
                err = process.communicate(timeout=WATCHDOG)[1]
    return Ran(out, err or b"", process.returncode)


def no_shell_above() -> list[str]:
    """What starts a command as `docker exec` does: nothing is above it. Skips where that is not possible."""
    for words in (["unshare", "-pf", "--mount-proc"], ["unshare", "-Urpf", "--mount-proc"]):
        if shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    pytest.skip("no process ids of one's own here")


def _chunks(file: io.FileIO) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # a pty whose other side was closed
        while chunk := file.read(1 << 16):
            yield chunk


def _socketpair() -> tuple[int, int]:
    mine, theirs = socket.socketpair()
    return mine.detach(), theirs.detach()


def _file() -> tuple[int, int]:
    fd, path = tempfile.mkstemp()
    mine = os.open(path, os.O_RDONLY)
    os.unlink(path)
    return mine, fd


_STDOUTS: dict[str, Callable[[], tuple[int, int]]] = {
    "pipe": os.pipe,
    "merged": os.pipe,
    "pty": os.openpty,
    "socketpair": _socketpair,
    "file": _file,
}


# A machine on which all tests run at once is no measure of how long a client waits.
PATIENT = "-DPATIENCE_MS=120000"


def make_client(path: Path, *options: str) -> Path:
    """A client built with these options for the compiler. Skips where none can be built."""
    try:
        path.write_bytes(_client(*options))
    except CannotBuild as error:
        pytest.skip(f"no client here: {error}")
    path.chmod(0o755)
    return path


@functools.cache
def _client(*options: str) -> bytes:
    """The program, compiled once for all tests of this process."""
    with tempfile.TemporaryDirectory() as directory:
        build(f"{directory}/client", *options)
        return Path(directory, "client").read_bytes()


def make_sandbox(top: Path, client: Path | str = "", *, has_client: bool | None = None) -> Sandbox:
    """With a client that asks a server, or by scripts alone; `has_client=False`: it asks none."""
    shim_files.write(str(top / "shims"), shim_files.DEFAULT_TOOLS, str(client))
    has_client = bool(client) if has_client is None else has_client
    made = Sandbox(top / "work", top / "shims", top / "store.db", top / "primed.db", has_client)
    with Session(made.directory, session_id="s", store=made.primed) as session:
        session.observe("cat f", LINES, cwd=made.directory)
    made.reset()
    return made


@contextlib.contextmanager
def served(sandbox: Sandbox, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server of the sandbox's store, that answers; a fixture of its own would hide whose process it is."""
    words = [sys.executable, "-m", "readcache", "serve", *(options or ("--on-demand",)), "--store", str(sandbox.store)]
    env = sandbox.env(PYTHONPATH=str(ROOT), PATH=os.environ["PATH"])
    with subprocess.Popen(words, env=env, cwd=ROOT, stdin=subprocess.DEVNULL) as server:
        try:
            named = Path(options[1]) if options else None
            directory = sandbox.directory.parent / ".local/state/readcache/serve"
            deadline = time.monotonic() + WATCHDOG
            while not (named.is_socket() if named else any(path.is_socket() for path in directory.glob("*"))):
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield server
        finally:
            server.terminate()


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
