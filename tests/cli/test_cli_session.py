"""Whose conversation it is, where a host says that in a variable of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.process.settings import read_settings

LINES = "".join(f"line {n} of a file that is read twice\n" for n in range(60))


def run(directory: Path, **env: str) -> str:
    """What `cat f` prints through `readcache run`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("READCACHE")}
    kept |= {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "READCACHE_STORE": str(directory / "store.db")}
    words = [sys.executable, "-m", "readcache", "run", "-c", "cat f"]
    return subprocess.run(words, cwd=directory, env=kept | env, capture_output=True, text=True, check=True).stdout


def test_run_takes_it_from_the_variable_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(LINES)
    named = {"READCACHE_SESSION_FROM": "HOSTS_ID"}
    assert run(tmp_path, READCACHE_SESSION="one") == LINES
    assert run(tmp_path, **named, HOSTS_ID="one").startswith("[")
    assert run(tmp_path, **named, HOSTS_ID="two") == LINES
    assert run(tmp_path, **named, HOSTS_ID="") == LINES
    assert run(tmp_path, **named) == LINES


@pytest.mark.parametrize(
    ("env", "flags", "session"),
    [
        ({"READCACHE_SESSION_FROM": "X", "X": "x"}, {}, "x"),
        ({"READCACHE_SESSION_FROM": "X", "X": "x", "READCACHE_SESSION": "s"}, {}, "s"),
        ({"READCACHE_SESSION_FROM": "X", "X": "x", "READCACHE_SESSION": ""}, {}, "x"),
        ({"READCACHE_SESSION_FROM": "X", "X": "x"}, {"session": "f"}, "f"),
        ({"READCACHE_SESSION_FROM": "X"}, {}, ""),
        ({"READCACHE_SESSION_FROM": ""}, {}, ""),
        ({"X": "x"}, {}, ""),
    ],
)
def test_what_is_said_outright_wins(env: dict[str, str], flags: dict[str, str], session: str) -> None:
    assert read_settings(env, flags).session == session


def test_all_other_commands_take_it_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f").write_text(LINES)
    run(tmp_path, READCACHE_SESSION="one")
    for name, value in {"READCACHE_SESSION_FROM": "HOSTS_ID", "HOSTS_ID": "one"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("READCACHE_STORE", str(tmp_path / "store.db"))
    monkeypatch.delenv("READCACHE_SESSION", raising=False)
    capfd.readouterr()
    assert main(["stats", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["calls"] == 1
    main(["doctor"])
    line = next(line for line in capfd.readouterr().out.splitlines() if line.split()[1] == "session")
    assert "one (as HOSTS_ID says)" in line
    monkeypatch.delenv("HOSTS_ID")
    main(["doctor"])
    line = next(line for line in capfd.readouterr().out.splitlines() if line.split()[1] == "session")
    assert "READCACHE_SESSION_FROM names HOSTS_ID" in line
