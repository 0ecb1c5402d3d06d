"""`readcache init --compile`: hooks by a small program, which leaves to Python what it cannot do itself."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import __version__
from readcache.cli import compiled_hook
from readcache.hosts.hooks import python_program
from readcache.serve import place
from tests.serve.conftest import ServerPlace
from tests.serve.test_hooks import events_of

pytestmark = pytest.mark.skipif(
    not (shutil.which("cc") and sys.platform == "linux"), reason="it is compiled, and for Linux alone"
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with the program in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("compiled")))
        return Path(compiled_hook.build_program()).parent


@pytest.fixture
def program(at: ServerPlace, compiled: Path) -> str:
    """The program in this test's state directory."""
    shutil.copytree(compiled, at.state / "readcache" / "bin")
    return compiled_hook.find_program()


def run(program: str, *words: str, event: bytes, env: dict[str, str] | None = None) -> bytes:
    ran = subprocess.run([program, *words], input=event, capture_output=True, timeout=60, check=False, env=env)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout


def test_it_answers_as_python_does_and_starts_the_server_it_did_not_find(
    at: ServerPlace, program: str, tmp_path: Path
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


def test_what_a_server_does_not_answer_python_does(at: ServerPlace, program: str, tmp_path: Path) -> None:
    first, second = events_of("codex", tmp_path / "work")
    pid = at.start()
    assert run(program, "hook", "codex", "--store", at.store, event=first) == b""
    os.kill(pid, signal.SIGSTOP)
    assert b"UNCHANGED" in run(program, "hook", "codex", event=second)
    os.kill(pid, signal.SIGKILL)
    at.wait_for_end()
    run(program, "hook", "codex", event=second)
    assert not (at.state / "readcache" / "failures.log").exists()


@pytest.mark.parametrize("megabytes", [1, 7, 9, 17])
def test_an_event_is_whole_however_long_it_is(megabytes: int, at: ServerPlace, program: str, tmp_path: Path) -> None:
    first, second = (json.loads(event) for event in events_of("codex", tmp_path / "work"))
    at.start()
    padding = {"padding": "x" * (megabytes << 20)}
    assert run(program, "hook", "codex", event=json.dumps(padding | first).encode()) == b""
    assert b"UNCHANGED" in run(program, "hook", "codex", event=json.dumps(padding | second).encode())


@pytest.mark.parametrize("off", ["READCACHE", "READCACHE_SERVER"])
def test_switched_off_no_server_is_asked(off: str, at: ServerPlace, program: str, tmp_path: Path) -> None:
    at.start()
    run(program, "hook", "codex", event=events_of("codex", tmp_path / "work")[0], env={**at.env, off: "off"})
    assert b" 0 calls" in at.readcache("doctor").stdout


def test_all_else_is_pythons(at: ServerPlace, program: str) -> None:
    assert run(program, "--version", event=b"").startswith(b"readcache ")
    assert b"hook HOST" in run(program, "hook", "--help", event=b"")
    assert at.path


def test_the_one_of_another_version_is_not_taken(at: ServerPlace, program: str) -> None:
    script = at.state / "readcache" / "bin" / ".tool" / "readcache"
    script.write_text(script.read_text().replace("# readcache ", "# readcache 0."))
    assert program
    assert compiled_hook.find_program() == ""


def test_without_its_python_it_says_so_and_prints_nothing(at: ServerPlace, program: str) -> None:
    """Readcache was uninstalled, and the hooks were left."""
    script = at.state / "readcache" / "bin" / ".tool" / "readcache"
    script.write_text(script.read_text().replace(shlex.quote(python_program()[0]), "'/gone/a python'"))
    ran = subprocess.run([program, "hook", "codex"], input=b"{}", capture_output=True, timeout=60, env=at.env)
    advice = b"install readcache again, or take its hooks out of the host's settings"
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr == b"readcache: /gone/a python is gone: " + advice + b"\n"


def told_of(at: ServerPlace, name: str, env: dict[str, str] | None = None) -> list[str]:
    """doctor's line of that name."""
    lines = at.readcache("doctor", env=env).stdout.decode().splitlines()
    return next((line.split(None, 2) for line in lines if line.split()[1] == name), [])


@pytest.fixture
def project(at: ServerPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which hooks are switched on by the program, and a home without anything."""
    made = tmp_path / "project"
    made.mkdir()
    monkeypatch.chdir(made)
    at.env["HOME"] = str(tmp_path)
    at.env["CODEX_HOME"] = str(tmp_path / "codex")
    assert at.readcache("init", "gemini", "--compile").returncode == 0
    return made


def other_version(at: ServerPlace) -> Path:
    """Makes the program look as one of another version does; where it tells which."""
    script = at.state / "readcache" / "bin" / ".tool" / "readcache"
    script.write_text(script.read_text().replace("# readcache ", "# readcache 0."))
    return script


@pytest.mark.usefixtures("project")
def test_doctor_names_a_program_of_another_version_and_what_mends_it(at: ServerPlace) -> None:
    path = at.state / "readcache" / "bin" / "readcache"
    assert told_of(at, "program") == ["ok", "program", f"{path}, of readcache {__version__}"]
    before = told_of(at, "gemini")
    other_version(at)
    verdict, _, said = told_of(at, "program")
    assert verdict == "broken"
    assert said.startswith(f"{path} is of readcache 0.{__version__}, and this is {__version__}: ")
    assert said.endswith("; say `readcache init gemini --project --compile`")
    assert told_of(at, "gemini") == before, "the settings are as they have to be"
    assert at.readcache(*said.split("`")[1].split()[1:]).returncode == 0
    assert told_of(at, "program")[0] == "ok"


@pytest.mark.usefixtures("project")
def test_doctor_names_a_program_that_starts_another_readcache_or_cannot_be_run(at: ServerPlace) -> None:
    script = at.state / "readcache" / "bin" / ".tool" / "readcache"
    good = script.read_text()
    script.write_text(good.replace("exec ", "exec /gone/"))
    assert (
        "another readcache than this one: say `readcache init gemini --project --compile`" in told_of(at, "program")[2]
    )
    script.unlink()
    assert f"starts {script}, which cannot be read: say `" in told_of(at, "program")[2]
    script.write_text(good)
    script.parent.with_name("readcache").chmod(0o600)
    assert "cannot be run: say `" in told_of(at, "program")[2]


@pytest.mark.usefixtures("project")
def test_doctor_names_a_program_that_is_gone_while_settings_start_it(at: ServerPlace) -> None:
    path = at.state / "readcache" / "bin" / "readcache"
    path.unlink()
    assert told_of(at, "program") == []
    verdict, _, said = told_of(at, "gemini")
    assert verdict == "broken"
    assert said.startswith(
        f"its settings start {path}, which is not there: say `readcache init gemini --project --compile`"
    )
    assert at.readcache("init", "gemini").returncode == 0
    assert told_of(at, "gemini")[0] == "ok"


@pytest.mark.usefixtures("project")
def test_without_a_compiler_doctor_and_init_say_so(at: ServerPlace, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("bash", "sh"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    env = {**at.env, "PATH": str(tmp_path / "bin")}
    assert told_of(at, "program", env)[0] == "ok"
    other_version(at)
    assert (
        "`, for which a C compiler has to be installed, or the same without --compile" in told_of(at, "program", env)[2]
    )
    ran = at.readcache("init", "gemini", "--compile", env=env)
    assert ran.returncode == 1
    assert b"no C compiler is on PATH, and nothing was changed" in ran.stderr
    ran = at.readcache("shims", "install", str(tmp_path / "shims"), "--compile", env=env)
    assert ran.returncode == 1
    assert b"no C compiler is on PATH, and nothing was written" in ran.stderr


def test_a_dry_run_compiles_nothing(at: ServerPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = at.readcache("init", "codex", "--compile", "--dry-run")
    assert f"{at.state}/readcache/bin/readcache hook codex".encode() in ran.stdout
    assert f"{at.state}/readcache/bin/readcache would be a program of readcache".encode() in ran.stdout
    assert not (at.state / "readcache").exists()


@pytest.mark.usefixtures("project")
def test_uninit_says_what_stays(at: ServerPlace) -> None:
    assert (at.state / "readcache").stat().st_mode & 0o777 == 0o700
    told = at.readcache("uninit", "gemini").stdout.decode()
    assert f"{at.state}/readcache still has bin: delete it" in told
    shutil.rmtree(at.state / "readcache")
    at.readcache("init", "gemini")
    assert "still has" not in at.readcache("uninit", "gemini").stdout.decode()
    assert not (at.state / "readcache").exists()


def test_after_an_upgrade_python_asks_the_server_that_the_old_program_does_not_know(
    at: ServerPlace, tmp_path: Path
) -> None:
    at.start()
    for version, calls in (("0.0.1", b" 1 calls"), (__version__, b" 1 calls")):
        event = events_of("codex", tmp_path / "work")[0]
        at.readcache("hook", "codex", stdin=event, env={**at.env, "READCACHE_ALONE": version})
        assert calls in at.readcache("doctor").stdout


def test_doctor_tells_of_a_server_of_another_version(at: ServerPlace) -> None:
    os.makedirs(os.path.dirname(at.path), mode=0o700)
    folder = place.open_folder(os.path.dirname(at.path))
    old = at.path.replace(f"/{__version__}-", "/0.0.1-")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place.short_name(old, folder))
        listening.listen()
        said = told_of(at, "server")
        assert said[0] == "ok"
        assert "one of readcache 0.0.1 is still there: it ends when nobody asks it, or by `readcache serve" in said[2]
    os.close(folder)
    assert "0.0.1" not in told_of(at, "server")[2]


def test_the_state_directory_is_closed_to_others_whoever_makes_it(at: ServerPlace) -> None:
    at.start()
    assert (at.state / "readcache").stat().st_mode & 0o777 == 0o700


def test_init_compiles_it_and_settings_name_it(
    at: ServerPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert at.readcache("init", "codex", "--compile").returncode == 0
    settings = (project / ".codex" / "hooks.json").read_text()
    assert f"{at.state}/readcache/bin/readcache hook codex" in settings
    assert b"is as it was" in at.readcache("init", "codex").stdout
    assert at.readcache("uninit", "codex").returncode == 0
    assert not (project / ".codex" / "hooks.json").exists()
