"""A working directory, a state directory and a session of its own for each test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from readcache.cli import shim_files
from tests.helpers import forks
from tests.helpers.files import WATCHDOG, wait_until
from tests.shims.sandbox import PATIENT, make_client

ROOT = Path(__file__).resolve().parents[2]
_READCACHE = (sys.executable, "-m", "readcache")
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a file `f` of 300 lines; session s is named."""
    for name in [name for name in os.environ if name.startswith("READCACHE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("READCACHE_SESSION", "s")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    (directory / "f").write_text("".join(f"line {n} of the file\n" for n in range(1, 301)))
    return directory


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that does what `readcache run -c` does, by asking a server."""
    top = tmp_path_factory.mktemp("client")
    program = make_client(top / "client", PATIENT)  # while all tests run, a server may be slow
    shim_files.write(str(top / "shims"), shim_files.DEFAULT_TOOLS, str(program))
    return top / "shims" / "readcache-run"


@pytest.fixture
def way() -> str:
    """How `readcache run -c COMMAND` is called: a module may ask for "python" and "client"."""
    return "python"


@pytest.fixture
def start(way: str, work: Path, _forked: None, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts `readcache …`; streams are pipes unless given."""
    short = [str(request.getfixturevalue("client"))] if way == "client" else []

    def start_with_pipes(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        by_client = short and arguments[:2] == ("run", "-c") and len(arguments) == 3
        if by_client:
            return forks.Process([*short, *arguments[1:]], **options)
        return forks.start(arguments, **options)

    if not short:
        yield start_with_pipes
        return
    with forks.start(["serve", "--on-demand"], stdin=subprocess.DEVNULL) as server:
        try:
            directory = work.parent / "state/readcache/serve"
            wait_until(lambda: any(map(Path.is_socket, directory.glob("*"))), "a server")
            yield start_with_pipes
        finally:
            server.terminate()


@pytest.fixture
def run_words(way: str, request: pytest.FixtureRequest) -> list[str]:
    """The words before the command, where `start` cannot be used."""
    request.getfixturevalue("start")  # has the server
    return [str(request.getfixturevalue("client")), "-c"] if way == "client" else [*_READCACHE, "run", "-c"]


@pytest.fixture
def run(start: Start) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs `python -m readcache …` to its end."""

    def run_readcache(*arguments: str, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
        with start(*arguments, **options) as process:
            out, err = process.communicate(stdin, timeout=WATCHDOG)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    return run_readcache
