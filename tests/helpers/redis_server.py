"""A real Redis or Valkey server for a test, on a Unix socket in a directory of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")


class Server:
    """A server that can be killed, stopped and started again. Keeps what it is told on the disk at once."""

    def __init__(self, *options: str) -> None:
        pytest.importorskip("redis", reason="needs the redis package: pip install 'readcache[redis]'")
        if PROGRAM is None:
            pytest.skip("needs redis-server or valkey-server on PATH")
        # a short path: that of a socket has at most 107 bytes
        self.place = Path(tempfile.mkdtemp(prefix="rc-"))
        self.url = f"unix://{self.place}/socket?db=0"
        self._options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        import redis

        assert PROGRAM is not None
        words = ["--port", "0", "--unixsocket", str(self.place / "socket"), "--dir", str(self.place)]
        keep = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self.process = subprocess.Popen(
            [PROGRAM, *words, *keep, *self._options], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        until = time.monotonic() + 20
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
        os.kill(self.process.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """It answers again."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends it, and takes its files away."""
        self.kill()
        shutil.rmtree(self.place, ignore_errors=True)
