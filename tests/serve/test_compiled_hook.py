"""`readcache init --compile`: hooks by a small program, which leaves to Python what it cannot do itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from readcache.cli import compiled_hook
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
