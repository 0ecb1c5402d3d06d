"""A real Redis or Valkey server for a test, on a Unix socket in a directory of its own."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.helpers.files import WATCHDOG
from tests.helpers.hanging import hang

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")


def free_port() -> int:
    """One that nobody uses now, far enough below the others' that a cluster's second port is one, too."""
    for _ in range(100):
        with socket.socket() as found, socket.socket() as second, contextlib.suppress(OSError):
            port = random.randrange(20_000, 30_000)
            found.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 10_000))
            return port
    raise AssertionError("no port is free")


class Server:
    """A server that can be killed, stopped and started again. Keeps what it is told on the disk at once."""

    def __init__(self, *options: str, port: bool = False) -> None:
        """`options`: more for the server. `port`: it listens on a port of the loopback interface, too."""
        pytest.importorskip("redis", reason="needs the redis package: pip install 'readcache[redis]'")
        if PROGRAM is None:
            pytest.skip("needs redis-server or valkey-server on PATH")
        # a short path: that of a socket has at most 107 bytes
        self.directory = Path(tempfile.mkdtemp(prefix="rc-"))
        self.url = f"unix://{self.directory}/socket?db=0"
        self.port = free_port() if port else 0
        self._options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        import redis

        assert PROGRAM is not None
        words = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--unixsocket",
            str(self.directory / "socket"),
            "--dir",
            str(self.directory),
        ]
        keep = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self.process = subprocess.Popen(
            [PROGRAM, *words, *keep, *self._options], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        until = time.monotonic() + WATCHDOG
        with redis.Redis.from_url(self.url) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.ConnectionError:
                    assert time.monotonic() < until
                    assert self.process.poll() is None, "the server ended"
                    time.sleep(0.01)

    def kill(self) -> None:
        """As a crash does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def hang(self) -> None:
        """It takes connections, and answers nothing until `wake`."""
        assert self.process is not None
        hang(self.process.pid)

    def wake(self) -> None:
        """It answers again."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends it, and takes its files away."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
