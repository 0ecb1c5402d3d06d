"""Putting shims into a sandbox, looking after them, and taking them out."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from readcache import __version__
from readcache.cli import shim_files
from readcache.cli.main import main
from readcache.cli.shim_files import find_client
from readcache.core.shell.readers import READERS
from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import LINES, ROOT, make_client

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("READCACHE") or name == "BASH_ENV"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("READCACHE_SESSION", "s")
    monkeypatch.setenv("READCACHE", "on")
    monkeypatch.setenv("READCACHE_SERVER", "off")  # a client does not wait for one on a busy machine
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_text(LINES)
    return tmp_path


def doctor(capfd: Capture, *arguments: str) -> tuple[str, str]:
    capfd.readouterr()
    main(["doctor", *arguments])
    line = next(line for line in capfd.readouterr().out.splitlines() if line.split()[1] == "shims")
    return line.split()[0], line


def test_installed_listed_sound_and_gone_without_a_trace(capfd: Capture, directory: Path) -> None:
    assert main(["shims", "install", "a dir/shims"]) == 0
    names = {path.name for path in (directory / "a dir" / "shims").iterdir()}
    wanted = {*shim_files.DEFAULT_TOOLS, "readcache-run", "agent-shell.sh", "agent-command.sh", shim_files.MARK}
    assert names == wanted | ({".tool"} if find_client() else set())
    assert doctor(capfd, "--shims", "a dir/shims")[0] == "ok"
    assert main(["shims", "uninstall", "a dir/shims"]) == 0
    assert not (directory / "a dir" / "shims").exists()


@pytest.mark.parametrize("given", [["nl", "gsed"], ["nl,gsed"]])
def test_the_tools_are_chosen_and_a_second_installation_replaces_the_first(directory: Path, given: list[str]) -> None:
    main(["shims", "install", "d"])
    main(["shims", "install", "d", "--tools", *given])
    programs = {path.name for path in (directory / "d").iterdir() if path.is_file() and os.access(path, os.X_OK)}
    assert programs == {"nl", "gsed", "readcache-run"}


def test_every_tool_that_can_be_shimmed_is_one_that_is_understood() -> None:
    assert set(shim_files.TOOLS) <= set(READERS)


def test_shims_of_an_earlier_version_pass_through_until_they_are_brought_up_to_date(
    capfd: Capture, directory: Path
) -> None:
    shim_files.write(str(directory / "d"), ["cat"], "")
    script, mark = directory / "d" / "cat", directory / "d" / shim_files.MARK
    script.write_text(script.read_text().replace("shim_entry.py", "gone.py"))
    mark.write_text(mark.read_text().replace(__version__, "0.0.1"))
    env = {**os.environ, "BASH_ENV": str(directory / "d" / "agent-shell.sh")}
    outs = [subprocess.run(["bash", "-c", "cat f; :"], env=env, capture_output=True, text=True) for _ in range(2)]
    assert [(out.stdout, out.stderr) for out in outs] == [(LINES, "")] * 2
    assert doctor(capfd, "--shims", "d")[0] == "broken"
    assert main(["shims", "env", "d"]) == 0
    assert doctor(capfd, "--shims", "d")[0] == "ok"
    assert main(["shims", "uninstall", "d"]) == 0
    assert not (directory / "d").exists()


@pytest.mark.slow
def test_a_client_of_an_earlier_version_is_replaced_by_the_first_read(directory: Path) -> None:
    old = make_client(directory / "old", '-DVERSION="0.0.1"')
    shim_files.write(str(directory / "d"), ["cat"], str(old))
    mark = directory / "d" / shim_files.MARK
    mark.write_text(mark.read_text().replace(__version__, "0.0.1"))
    env = {
        **os.environ,
        "BASH_ENV": str(directory / "d" / "agent-shell.sh"),
        "READCACHE_STORE": str(directory / "s.db"),
    }
    outs = [subprocess.run(["bash", "-c", "cat f; :"], env=env, capture_output=True, text=True) for _ in range(2)]
    assert outs[0].stdout == LINES
    assert outs[1].stdout.startswith("[FILE_UNCHANGED ")
    assert (directory / "d" / "cat").read_bytes() == Path(find_client()).read_bytes()
    assert f"version={__version__}" in mark.read_text()


def test_options_of_an_earlier_version_are_accepted_and_change_nothing(directory: Path) -> None:
    assert main(["shims", "install", "d"]) == 0
    assert main(["shims", "install", "e", "--compile", "--static"]) == 0
    assert {path.name for path in (directory / "d").iterdir()} == {path.name for path in (directory / "e").iterdir()}


def test_the_exports_work_where_they_are_evaluated(capfd: Capture) -> None:
    main(["shims", "install", "a 'dir"])
    for shell in ("bash", "sh"):
        capfd.readouterr()
        main(["shims", "env", "a 'dir", "--session", f"by {shell}"])
        exports = capfd.readouterr().out
        words = [shell, "-c", f"{exports}\ncat f; :"]
        outs = [subprocess.run(words, capture_output=True, text=True).stdout for _ in range(2)]
        assert outs[0] == LINES
        assert outs[1].startswith("[FILE_UNCHANGED ")


@pytest.mark.slow
def test_the_exports_for_a_harness_work_in_each_bash_that_it_starts(capfd: Capture) -> None:
    main(["shims", "install", "d"])
    for options in ([], ["--whole-command"]):
        capfd.readouterr()
        main(["shims", "env", "d", "--launch", *options, "--session", f"t{len(options)}"])
        named = re.findall(r"^export (\w+)=(\S+)$", capfd.readouterr().out, re.MULTILINE)
        env = {**os.environ, **dict(named)}
        words = ["bash", "-c", "cat f; :"]
        outs = [subprocess.run(words, env=env, capture_output=True, text=True).stdout for _ in range(2)]
        assert outs[0] == LINES
        assert outs[1].startswith("[FILE_UNCHANGED ")


def test_without_a_session_one_is_made_up(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    main(["shims", "install", "d"])
    main(["shims", "env", "d"])
    main(["shims", "env", "d"])
    assert len(set(re.findall(r"READCACHE_SESSION=sandbox-\w{16}", capfd.readouterr().out))) == 2


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["shims", "install", "d", "--tools", "bash"], 2),
        (["shims", "install", "d", "--tools", "../cat"], 2),
        (["shims", "install", "a:b"], 2),
        (["shims", "install", "a$b"], 2),
        (["shims", "install", "x$(touch pwned)y"], 2),
        (["shims", "install", "x`touch pwned`y"], 2),
        (["shims", "install", "a\\b/c"], 2),
        (["shims", "install", "f/d"], 1),
        (["shims", "install", "mine"], 1),
        (["shims", "uninstall", "mine"], 1),
        (["shims", "uninstall", "nowhere"], 1),
        (["shims", "env", "nowhere"], 1),
        (["shims", "frobnicate", "d"], 2),
        (["shims", "install"], 2),
    ],
)
def test_what_cannot_be_done_is_one_line(capfd: Capture, directory: Path, arguments: list[str], status: int) -> None:
    (directory / "mine").mkdir()
    (directory / "mine" / "cat").write_text("somebody's")
    assert main(arguments) == status
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert (directory / "mine" / "cat").read_text() == "somebody's"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a$b", "x$(touch pwned)y", "`id`", "back\\slash", "a:b", "two\nlines"])
def test_a_directory_that_was_moved_to_a_name_that_bash_expands_is_refused(
    capfd: Capture, directory: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bash expands the value of BASH_ENV: commands in it would run."""
    main(["shims", "install", "d"])
    (directory / "d").rename(directory / name)
    for options in ([], ["--launch"], ["--whole-command"]):
        capfd.readouterr()
        assert main(["shims", "env", name, *options]) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
    assert doctor(capfd, "--shims", name)[0] == "broken"
    monkeypatch.setenv("BASH_ENV", f"{directory}/{name}/agent-shell.sh")
    verdict, line = doctor(capfd)
    assert verdict == "broken"
    assert "choose a directory without" in line
    assert main(["shims", "uninstall", name]) == 0
    assert not (directory / "pwned").exists()


@pytest.mark.slow
def test_a_name_with_other_odd_characters_is_none_to_bash(capfd: Capture) -> None:
    name = "a 'b\" *?[c] ~ ! # ; & | (d) {e,f} %é"
    assert main(["shims", "install", name]) == 0
    capfd.readouterr()
    main(["shims", "env", name, "--launch"])
    exports = capfd.readouterr().out
    lines = (line.removeprefix("export ").split("=", 1) for line in exports.splitlines())
    env = {**os.environ, **{key: shlex.split(value)[0] for key, value in lines}}
    outs = [subprocess.run(["bash", "-c", "cat f; :"], env=env, capture_output=True, text=True) for _ in range(2)]
    assert (outs[0].stdout, outs[0].stderr) == (LINES, "")
    assert outs[1].stdout.startswith("[FILE_UNCHANGED ")
    assert main(["shims", "uninstall", name]) == 0


@pytest.mark.parametrize("there", ["nothing", "empty", "shims"])
def test_whatever_the_umask_every_user_may_read_the_shims(directory: Path, there: str) -> None:
    if there == "empty":
        (directory / "a" / "d").mkdir(parents=True)
        (directory / "a" / "d").chmod(0o700)
    elif there == "shims":
        main(["shims", "install", "a/d"])
        (directory / "a" / "d").chmod(0o700)
    before = os.umask(0o077)
    try:
        assert main(["shims", "install", "a/d"]) == 0
    finally:
        os.umask(before)
    for path in (directory / "a", directory / "a" / "d", *(directory / "a" / "d").rglob("*")):
        wanted = 0o555 if path.is_dir() or path.name in shim_files.TOOLS else 0o444
        assert path.stat().st_mode & wanted == wanted, path


def test_a_directory_with_files_of_others_keeps_its_mode(directory: Path) -> None:
    (directory / "mine").mkdir()
    (directory / "mine" / "secret").write_text("x")
    (directory / "mine").chmod(0o700)
    main(["shims", "install", "mine"])
    assert stat.S_IMODE((directory / "mine").stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="root sees every file")
def test_doctor_tells_root_what_other_users_cannot_read(capfd: Capture) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(os.path.realpath(name))
        directory.chmod(0o755)
        main(["shims", "install", f"{directory}/inside/d"])
        assert f"{directory}/inside" not in doctor(capfd, "--shims", f"{directory}/inside/d")[1].partition(";")[2]
        (directory / "inside").chmod(0o700)
        verdict, line = doctor(capfd, "--shims", f"{directory}/inside/d")
        assert verdict == "ok"
        assert f"{directory}/inside is closed to other users" in line


@pytest.mark.parametrize("shell", ["sh", "bash", "bash --posix", "busybox sh", "zsh", "mksh"])
def test_the_command_runs_though_the_shims_are_gone(capfd: Capture, directory: Path, shell: str) -> None:
    """Some shells end where the file that `.` names is missing."""
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"no {shell} here")
    main(["shims", "install", "d"])
    capfd.readouterr()
    main(["shims", "env", "d"])
    exports = capfd.readouterr().out
    shutil.rmtree(directory / "d")
    words = [*shell.split(), "-c", f"{exports}\ncat f"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (LINES, "", 0)
    readme = (ROOT / "docs/shims.md").read_text()
    assert "`[ -r /opt/shims/agent-shell.sh ] && . /opt/shims/agent-shell.sh;`" in readme


@pytest.mark.parametrize("way", ["agent-shell.sh", "agent-command.sh"])
def test_a_bash_env_of_shims_that_are_gone_prints_nothing(directory: Path, way: str) -> None:
    env = {**os.environ, "BASH_ENV": str(directory / "gone" / way)}
    done = subprocess.run(["bash", "-c", "cat f"], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (LINES, "")


def test_files_of_others_in_the_directory_stay(directory: Path) -> None:
    main(["shims", "install", "d"])
    (directory / "d" / "mine").write_text("x")
    main(["shims", "uninstall", "d"])
    assert [path.name for path in (directory / "d").iterdir()] == ["mine"]


@pytest.mark.parametrize("harm", ["changed", "missing", "not executable"])
def test_doctor_finds_what_is_wrong(capfd: Capture, directory: Path, harm: str) -> None:
    main(["shims", "install", "d", "--tools", "cat", "nl"])
    shim = directory / "d" / "cat"
    if harm == "changed":
        shim.write_bytes(shim.read_bytes() + b"\n")
    elif harm == "missing":
        shim.unlink()
    else:
        shim.chmod(0o644)
    verdict, line = doctor(capfd, "--shims", "d")
    assert verdict == "broken"
    assert f"{directory}/d/cat is not what readcache {__version__} at " in line
    again = f"readcache shims install {directory}/d --tools cat nl"
    assert line.endswith(f": say `{again}`")
    main(again.split()[1:])
    assert doctor(capfd, "--shims", "d")[0] == "ok"


def test_doctor_tells_how_the_server_of_a_sandbox_is(capfd: Capture, directory: Path) -> None:
    main(["shims", "install", "d"])
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{directory}/d/.socket")
    verdict, line = doctor(capfd, "--shims", "d")
    assert verdict == "ok"
    assert f"no server at {directory}/d/.socket, so every byte is shown: run `readcache serve --socket" in line
    words = [sys.executable, "-m", "readcache", "serve", "--socket", f"{directory}/d/.socket", "--session", "s"]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + WATCHDOG
            while f"server at {directory}/d/.socket: process {server.pid}" not in doctor(capfd, "--shims", "d")[1]:
                assert time.monotonic() < deadline
        finally:
            server.terminate()


def test_doctor_finds_the_shims_by_path_and_by_bash_env(
    capfd: Capture, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "none" in doctor(capfd)[1]
    main(["shims", "install", "d"])
    main(["shims", "install", "e"])
    monkeypatch.setenv("PATH", f"{directory}/d:{os.environ['PATH']}")
    monkeypatch.setenv("BASH_ENV", f"{directory}/e/agent-shell.sh")
    verdict, line = doctor(capfd)
    assert verdict == "ok"
    assert f"{directory}/d, {directory}/e" in line
    monkeypatch.delenv("READCACHE")
    assert "READCACHE=on" in doctor(capfd)[1]


def test_doctor_finds_a_tool_that_is_not_there(
    capfd: Capture, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["shims", "install", "d"])
    monkeypatch.setenv("PATH", str(directory / "d"))
    assert "no real cat on PATH" in doctor(capfd)[1]


def test_an_installed_package_has_the_scripts_with_it() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for script in (ROOT / "shims").glob("*.sh"):
        assert f'"shims/{script.name}" = "readcache/_shims/{script.name}"' in text


def test_every_script_is_what_a_shell_can_read() -> None:
    for script in (ROOT / "shims").glob("*.sh"):
        shells = ["bash"] if script.name == "agent-command.sh" else [s for s in ("dash", "bash") if shutil.which(s)]
        for shell in shells:
            subprocess.run([shell, "-n", script], check=True)
