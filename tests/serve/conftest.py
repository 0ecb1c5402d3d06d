"""A state directory of its own for each test, whose server ends with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from readcache.serve import address
from readcache.serve.address import server_paths
from tests.helpers import forks
from tests.helpers.files import WATCHDOG

TOP = Path(__file__).resolve().parents[2]


class ServerUnderTest:
    """Where the server of the default store listens, and what it takes to talk to it."""

    def __init__(self, state: Path, env: dict[str, str]) -> None:
        self.path, self.store = server_paths("")
        self.state, self.env = state, env

    def readcache(
        self, *words: str, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs `python -m readcache …` to its end."""
        pipe = subprocess.PIPE
        with forks.start(words, stdin=pipe, stdout=pipe, stderr=pipe, env=env or self.env) as process:
            out, err = process.communicate(stdin, timeout=WATCHDOG)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def start(self) -> int:
        """Starts a server, and waits until it answers; its process id."""
        assert address.start(self.path, self.store)
        return self.wait()

    def wait(self, path: str = "") -> int:
        """Waits until a server answers, at `path` or at our own; its process id."""
        deadline = time.monotonic() + WATCHDOG
        while True:
            with contextlib.suppress(address.NoServer):
                connection = address.reach(path or self.path, 5)
                pid, _ = address.peer(connection)
                connection.close()
                assert pid is not None
                return pid
            assert time.monotonic() < deadline, "no server came"
            time.sleep(0.02)

    def is_locked(self, path: str = "") -> bool:
        """True while a server lives, at `path` or at our own, by its lock."""
        try:
            lock = address.take_lock(path or self.path)
        except FileNotFoundError:
            return False
        if lock is not None:
            os.close(lock)
        return lock is None

    def wait_for_end(self, path: str = "") -> None:
        """Waits until no server lives, at `path` or at our own."""
        deadline = time.monotonic() + WATCHDOG
        while self.is_locked(path):
            assert time.monotonic() < deadline, "the server goes on"
            time.sleep(0.02)

    def end(self) -> None:
        """Kills the server, if there is one."""
        deadline = time.monotonic() + WATCHDOG
        while self.is_locked() and time.monotonic() < deadline:
            with contextlib.suppress(address.NoServer, ProcessLookupError):
                connection = address.reach(self.path, 5)
                pid, _ = address.peer(connection)
                connection.close()
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _forked: None) -> Iterator[ServerUnderTest]:
    """A place without a server. The one that is there in the end is killed."""
    for name in [name for name in os.environ if name.startswith("READCACHE")]:
        monkeypatch.delenv(name)
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    monkeypatch.setattr(address, "SOON", 0.0)
    found = ServerUnderTest(state, dict(os.environ))
    try:
        yield found
    finally:
        found.end()
