"""`readcache init` without a host: what is found here, and what becomes of it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from readcache.cli.main import main
from tests.helpers.files import WATCHDOG

Capture = pytest.CaptureFixture[str]
WORDS = [sys.executable, "-m", "readcache", "init"]
VERSIONS = {"codex": "codex-cli 0.171.0", "gemini": "This is gemini 0.52.1-nightly.3."}


@pytest.fixture
def home(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, and a PATH with the programs codex and gemini, which print their versions."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, version in VERSIONS.items():
        (programs / name).write_text(f"#!/bin/sh\necho '{version}'\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.chdir(work)
    for name in ("CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def settings_in(home: Path) -> dict[str, Path]:
    return {"codex": home / ".codex/hooks.json", "gemini": home / ".gemini/settings.json"}


def test_without_a_terminal_it_only_lists(home: Path, tmp_path: Path) -> None:
    done = subprocess.run(WORDS, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    found = settings_in(home)
    assert done.stdout.splitlines() == [
        f"codex 0.171.0, {tmp_path}/programs/codex: would be on: changes {found['codex']}",
        f"gemini 0.52.1-nightly.3, {tmp_path}/programs/gemini: would be advise: changes {found['gemini']}",
    ]
    assert "nobody can be asked here: run `readcache init HOST` for one of these, or" in done.stderr
    assert not any(path.exists() for path in found.values())


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"\n", 1)])
def test_on_a_terminal_it_asks(home: Path, answer: bytes, status: int) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(WORDS, stdin=theirs, stdout=subprocess.PIPE, text=True) as process:
        os.write(ours, answer)
        printed, _ = process.communicate(timeout=WATCHDOG)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == status
    assert "Enable these? [y/N]" in printed
    assert [path.exists() for path in settings_in(home).values()] == [status == 0] * 2
    assert ("nothing was changed" in printed) == (status == 1)


def test_all_found_enables_them_and_ends_with_what_is_kept(home: Path, capfd: Capture) -> None:
    assert main(["init", "--all-found"]) == 0
    printed = capfd.readouterr().out
    assert all("hook" in path.read_text() for path in settings_in(home).values())
    assert "codex: on (" in printed
    last = printed.splitlines()[-1]
    assert last.startswith("kept: what agents are shown")
    assert "for 30 days" in last
    assert "look: `readcache doctor`, and `readcache gain`" in last
    assert last.endswith("undo: `readcache uninit HOST`")
    assert printed.count("kept: ") == 1
    assert main(["init"]) == 0, "and nobody is asked if there is nothing to do"
    assert capfd.readouterr().out.endswith("already advise\nnothing to change: all of these are enabled\n")


def test_a_host_that_is_enabled_keeps_its_mode_and_policy(home: Path, capfd: Capture) -> None:
    assert main(["init", "codex", "--advise", "--policy", "max"]) == 0
    before = settings_in(home)["codex"].read_bytes()
    capfd.readouterr()
    assert main(["init", "--all-found"]) == 0
    assert "programs/codex: already advise\n" in capfd.readouterr().out
    assert settings_in(home)["codex"].read_bytes() == before
    assert main(["init", "--all-found", "--on"]) == 0
    assert "hook codex --policy max" in settings_in(home)["codex"].read_text()


def test_settings_that_cannot_be_edited_stop_no_other_host(home: Path, capfd: Capture) -> None:
    broken = settings_in(home)["gemini"]
    broken.parent.mkdir(parents=True)
    broken.write_text("{ this is not JSON")
    assert main(["init", "--all-found"]) == 1
    printed = capfd.readouterr().out
    assert f"programs/gemini: cannot be enabled: {broken}" in printed
    assert broken.read_text() == "{ this is not JSON"
    assert settings_in(home)["codex"].exists()
    assert printed.splitlines()[-1].endswith("undo: `readcache uninit codex`")


def test_a_dry_run_shows_the_changes_and_makes_none(home: Path, capfd: Capture) -> None:
    assert main(["init", "--dry-run"]) == 0
    assert f"+++ {settings_in(home)['codex']}" in capfd.readouterr().out
    assert not home.exists()


def test_a_program_that_tells_no_version_is_found(home: Path, tmp_path: Path, capfd: Capture) -> None:
    (tmp_path / "programs/codex").write_text("#!/bin/sh\nexit 1\n")
    assert main(["init", "--dry-run"]) == 0
    assert capfd.readouterr().out.startswith("codex ?, ")
    assert not home.exists()


def test_without_any_agent_it_says_what_it_looked_for(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert main(["init"]) == 1
    assert "none of claude, codex, copilot, gemini, kilo, mini, opencode, pi is on PATH" in capfd.readouterr().err
    assert not home.exists()


def test_a_host_and_all_found_exclude_each_other(capfd: Capture) -> None:
    assert main(["init", "codex", "--all-found"]) == 2
    assert "init takes a HOST, or --all-found" in capfd.readouterr().err
