"""The client in hooks: it asks the server, and leaves to Python what it cannot do itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import __version__
from readcache.cli.shim_files import find_client
from readcache.serve import address
from tests.helpers.files import WATCHDOG
from tests.helpers.hanging import hang
from tests.serve.conftest import ServerUnderTest
from tests.serve.test_hooks import events_of

pytestmark = pytest.mark.slow  # many servers and clients

PYTHON = (sys.executable, "-m", "readcache")


@pytest.fixture
def program() -> tuple[str, ...]:
    """The words that start the client, with those that start Python in its place."""
    client = find_client()
    if not client:
        pytest.skip("no client can be built here")
    return (client, *PYTHON)


def run(program: tuple[str, ...], *words: str, event: bytes, env: dict[str, str] | None = None) -> bytes:
    ran = subprocess.run([*program, *words], input=event, capture_output=True, timeout=WATCHDOG, check=False, env=env)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout


def test_it_answers_as_python_does_and_starts_the_server_it_did_not_find(
    at: ServerUnderTest, program: tuple[str, ...], tmp_path: Path
) -> None:
    first, second = events_of("codex", tmp_path / "work")
    assert run(program, "hook", "codex", event=first) == b""
    at.wait()
    by_program = run(program, "hook", "codex", event=second)
    assert b"UNCHANGED" in by_program
    assert b"1 calls" in at.readcache("doctor").stdout
    alone = {**at.env, "READCACHE_SERVER": "off", "XDG_STATE_HOME": str(tmp_path / "alone")}
    for event in (first, second):
        by_python = at.readcache("hook", "codex", stdin=event, env=alone).stdout
    assert by_program == by_python


def test_what_a_server_does_not_answer_python_does(
    at: ServerUnderTest, program: tuple[str, ...], tmp_path: Path
) -> None:
    first, second = events_of("codex", tmp_path / "work")
    pid = at.start()
    assert run(program, "hook", "codex", "--store", at.store, event=first) == b""
    hang(pid)
    assert b"UNCHANGED" in run(program, "hook", "codex", event=second)
    os.kill(pid, signal.SIGKILL)
    at.wait_for_end()
    run(program, "hook", "codex", event=second)
    assert not (at.state / "readcache" / "failures.log").exists()


@pytest.mark.parametrize("megabytes", [1, 7, 9, 17])
def test_an_event_is_whole_however_long_it_is(
    megabytes: int, at: ServerUnderTest, program: tuple[str, ...], tmp_path: Path
) -> None:
    first, second = (json.loads(event) for event in events_of("codex", tmp_path / "work"))
    at.start()
    padding = {"padding": "x" * (megabytes << 20)}
    assert run(program, "hook", "codex", event=json.dumps(padding | first).encode()) == b""
    assert b"UNCHANGED" in run(program, "hook", "codex", event=json.dumps(padding | second).encode())


@pytest.mark.parametrize("off", ["READCACHE", "READCACHE_SERVER"])
def test_switched_off_no_server_is_asked(
    off: str, at: ServerUnderTest, program: tuple[str, ...], tmp_path: Path
) -> None:
    at.start()
    run(program, "hook", "codex", event=events_of("codex", tmp_path / "work")[0], env={**at.env, off: "off"})
    assert b" 0 calls" in at.readcache("doctor").stdout


def test_all_else_is_pythons(at: ServerUnderTest, program: tuple[str, ...]) -> None:
    assert run(program, "--version", event=b"").startswith(b"readcache ")
    assert b"usage: readcache hook " in run(program, "hook", "--help", event=b"")
    assert at.path


def test_without_its_python_it_fails_and_prints_nothing(at: ServerUnderTest, program: tuple[str, ...]) -> None:
    """Readcache was uninstalled, and the hooks were left: `init` writes commands that do not mind."""
    for words in ([], ["/gone/a python", "hook", "codex"], ["/gone/hook", "hook"]):
        ran = subprocess.run([program[0], *words], input=b"{}", capture_output=True, timeout=WATCHDOG, env=at.env)
        assert (ran.returncode, ran.stdout) == (127, b"")
        assert ran.stderr.startswith(b"readcache: ")


def told_of(at: ServerUnderTest, name: str, env: dict[str, str] | None = None) -> list[str]:
    """doctor's line of that name."""
    lines = at.readcache("doctor", env=env).stdout.decode().splitlines()
    return next((line.split(None, 2) for line in lines if line.split()[1] == name), [])


@pytest.fixture
def project(at: ServerUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, and a home without anything."""
    made = tmp_path / "project"
    made.mkdir()
    monkeypatch.chdir(made)
    at.env["HOME"] = str(tmp_path)
    at.env["CODEX_HOME"] = str(tmp_path / "codex")
    return made


@pytest.mark.parametrize("former", [[], ["--compile"], ["--compile", "--static"]])
def test_init_has_hooks_start_the_client_whatever_options_of_an_earlier_version_say(
    at: ServerUnderTest, project: Path, program: tuple[str, ...], former: list[str]
) -> None:
    assert at.readcache("init", "codex", *former).returncode == 0
    path = project.parent / "codex/hooks.json"
    settings = path.read_text()
    assert f'"{program[0]} ' in settings
    assert " hook codex" in settings
    assert b"already " in at.readcache("init", "codex").stdout
    assert not (at.state / "readcache" / "bin").exists()
    assert told_of(at, "client") == ["ok", "client", program[0]]
    assert at.readcache("uninit", "codex").returncode == 0
    assert not path.exists()


def test_a_hook_that_starts_the_program_of_an_earlier_version_is_told_of_and_replaced(
    at: ServerUnderTest, project: Path
) -> None:
    """It stood in the state directory, and a script beside it started Python."""
    at.readcache("init", "gemini")
    path = project.parent / ".gemini/settings.json"
    settings = json.loads(path.read_text())
    hook = settings["hooks"]["AfterTool"][0]["hooks"][0]
    hook["command"] = f"{at.state}/readcache/bin/readcache hook gemini --advise"
    path.write_text(json.dumps(settings))
    assert told_of(at, "gemini")[0] == "broken"
    assert at.readcache("init", "gemini").returncode == 0
    assert "readcache/bin/readcache hook" not in path.read_text()
    assert told_of(at, "gemini")[0] == "ok"


def test_after_an_upgrade_python_asks_the_server_that_the_old_program_does_not_know(
    at: ServerUnderTest, tmp_path: Path
) -> None:
    at.start()
    for version, calls in (("0.0.1", b" 1 calls"), (__version__, b" 1 calls")):
        event = events_of("codex", tmp_path / "work")[0]
        at.readcache("hook", "codex", stdin=event, env={**at.env, "READCACHE_ALONE": version})
        assert calls in at.readcache("doctor").stdout


def test_doctor_tells_of_a_server_of_another_version(at: ServerUnderTest) -> None:
    os.makedirs(os.path.dirname(at.path), mode=0o700)
    folder = address.open_folder(os.path.dirname(at.path))
    old = at.path.replace(f"/{__version__}-", "/0.0.1-")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address.short_name(old, folder))
        listening.listen()
        said = told_of(at, "server")
        assert said[0] == "ok"
        assert "one of readcache 0.0.1 is still running: it ends when idle, or with `readcache serve" in said[2]
    os.close(folder)
    assert "0.0.1" not in told_of(at, "server")[2]


def test_the_state_directory_is_closed_to_others_whoever_makes_it(at: ServerUnderTest) -> None:
    at.start()
    assert (at.state / "readcache").stat().st_mode & 0o777 == 0o700
