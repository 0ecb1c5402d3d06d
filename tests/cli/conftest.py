"""A working directory, a state directory and a session of its own for each test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., "subprocess.Popen[bytes]"]


class _Process(subprocess.Popen[bytes]):
    """After a test that failed, nobody waits for it."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is not None and self.poll() is None:
            os.kill(-self.pid if os.getpgid(self.pid) == self.pid else self.pid, signal.SIGKILL)
        super().__exit__(kind, value, trace)


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a file `f` of 300 lines; session s is named."""
    for name in [name for name in os.environ if name.startswith("READCACHE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("READCACHE_SESSION", "s")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "f").write_text("".join(f"line {n} of the file\n" for n in range(1, 301)))
    return place


@pytest.fixture
def start() -> Start:
    """Starts `python -m readcache …`; streams are pipes unless given."""

    def start_readcache(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return _Process([sys.executable, "-m", "readcache", *arguments], **options)

    return start_readcache


@pytest.fixture
def run(start: Start) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs `python -m readcache …` to its end."""

    def run_readcache(*arguments: str, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
        with start(*arguments, **options) as process:
            out, err = process.communicate(stdin, timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    return run_readcache
