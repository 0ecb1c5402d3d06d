"""`readcache uninit --all`: what there is, and all of it gone."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.core.model.plugins import how_to_uninstall
from tests.helpers.files import WATCHDOG, wait_until

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def everything(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Hosts in two projects and for the user, shims, a running server, a store."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert main(["init", "gemini", "--project"]) == 0
    monkeypatch.chdir(work)
    assert main(["init", "codex", "--user"]) == 0
    assert main(["shims", "install", str(tmp_path / "shims")]) == 0
    assert subprocess.run([sys.executable, "-m", "readcache", "run", "-c", "cat f"], stdout=-1).returncode == 0
    return {
        "gemini": other / ".gemini/settings.json",
        "codex": tmp_path / "home/.codex/hooks.json",
        "shims": tmp_path / "shims",
        "state": tmp_path / "state/readcache",
    }


def test_all_that_is_there_is_said_and_taken_away(everything: dict[str, Path], capfd: Capture) -> None:
    words = [sys.executable, "-m", "readcache", "serve", "--on-demand"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as server:
        wait_until(lambda: any(map(Path.is_socket, (everything["state"] / "serve").glob("*"))), "a server")
        capfd.readouterr()
        assert main(["uninit", "--all", "--yes"]) == 0
        assert server.wait(WATCHDOG) == 0
    said = capfd.readouterr().out
    for kind, path in everything.items():
        assert str(path) in said, kind
        assert not path.exists(), kind
    assert f"stopped process {server.pid}\n" in said
    assert "readcache.db" in said
    assert "kept" not in said, "what is removed is not listed as kept"
    assert f"Only the package is left: {how_to_uninstall()}\n" in said
    assert main(["uninit", "--all", "--yes"]) == 0
    assert capfd.readouterr().out == "nothing of readcache is here but the package\n"


def test_without_a_terminal_and_without_yes_nothing_is_taken_away(everything: dict[str, Path], capfd: Capture) -> None:
    capfd.readouterr()
    assert main(["uninit", "--all", "--dry-run"]) == 0
    said = capfd.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "readcache", "uninit", "--all"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout + "nothing was taken away\n" == said
    assert done.stderr == "readcache: nobody can be asked here: add --yes to take all of this away\n"
    assert all(path.exists() for path in everything.values())


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"\n", 1), (b"no\n", 1)])
def test_on_a_terminal_it_asks(everything: dict[str, Path], answer: bytes, status: int) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "readcache", "uninit", "--all"]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE) as process:
        os.write(ours, answer)
        assert process.wait(WATCHDOG) == status
    os.close(ours)
    os.close(theirs)
    assert everything["state"].exists() == bool(status)


def test_what_cannot_be_taken_out_is_said_and_the_copies_stay(
    everything: dict[str, Path], capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything["gemini"].write_text("{ no JSON")
    everything["gemini"].chmod(0o444)
    monkeypatch.setattr("readcache.cli.hosts.shims.uninstall", lambda directory: shutil.rmtree(directory))
    capfd.readouterr()
    status = main(["uninit", "--all", "--yes"])
    told = capfd.readouterr()
    assert status == 1
    assert str(everything["gemini"]) in told.err
    assert everything["state"].exists()


def test_a_host_or_all_is_named(capfd: Capture) -> None:
    for words in (["uninit"], ["uninit", "codex", "--all"]):
        assert main(words) == 2
        assert capfd.readouterr().err == "readcache: uninit needs a HOST, or --all; see readcache uninit --help\n"


def test_a_store_that_the_user_named_stays(everything: dict[str, Path], work: Path, capfd: Capture) -> None:
    main(["run", "--store", "mine.db", "-c", "cat f"])
    os.environ["READCACHE_STORE"] = str(work / "mine.db")
    try:
        assert main(["uninit", "--all", "--yes"]) == 0
    finally:
        del os.environ["READCACHE_STORE"]
    assert f"{work / 'mine.db'} is yours, and stays\n" in capfd.readouterr().out
    assert (work / "mine.db").exists()
    assert not everything["state"].exists()
