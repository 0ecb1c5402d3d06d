"""However many and however long the variables are, the real tool runs, and has all of them."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from readcache.cli.main import main
from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import LINES, Sandbox, start

pytestmark = pytest.mark.slow  # many shells

PATH = "/usr/local/bin:/usr/bin:/bin"
# bash takes a second and a half for the most
MANY, MOST = ({f"SERVICE_{number}": "tcp://10.0.0.1:80" for number in range(count)} for count in (5_000, 20_000))
LONG = {"PATH": f"{'/nowhere' * 600}:{PATH}"}


@pytest.fixture(scope="module", params=["", "--compile", "--compile --static"])
def shims(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param and shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    directory = tmp_path_factory.mktemp("environments") / "shims"
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["shims", "install", str(directory), *request.param.split()]) == 0
    return directory


def environment_printed(program: Path | str, env: dict[str, str]) -> dict[str, str]:
    """What the real cat has, as it prints it."""
    words = ["cat", "/proc/self/environ"]
    done = subprocess.run(words, executable=program, env=env, capture_output=True, text=True, timeout=WATCHDOG)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0")[:-1])


@pytest.mark.parametrize(
    "variables",
    [
        MANY,
        {"LONG": "x" * 131_000},
        {"PATH": ":".join([PATH, *["/nowhere"] * 14_000])},
        LONG,
        MOST,
    ],
    ids=["many", "long", "long path", "long entry of path", "most"],
)
def test_the_real_tool_has_the_whole_environment(shims: Path, variables: dict[str, str]) -> None:
    env = {"PATH": PATH, **variables}
    found = environment_printed(shims / "cat", env)
    assert {name: found.get(name) for name in env} == env


def fullest(may_start: Callable[[dict[str, str]], bool]) -> None:
    """Calls it with environments that come ever closer to the longest with which it is true."""
    # Linux takes 6 MiB however large the stack may be, and no variable of more than 128 KiB.
    count = min(os.sysconf("SC_ARG_MAX"), 6 << 20) // 60_000 - 1
    env = {f"V{number}": "x" * 60_000 for number in range(count)}
    fits, fails = 0, 130_000
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if may_start(env | {"LAST": "x" * middle}):
            fits = middle
        else:
            fails = middle
    assert fits


def test_where_no_variable_can_be_added_the_real_tool_has_those_that_were_given(
    shims: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (shims / "readcache-run").exists():
        pytest.skip("a script takes more room than a program")
    monkeypatch.chdir(shims)
    real = shutil.which("cat", path=PATH) or ""

    def may_start(variables: dict[str, str]) -> bool:
        env = {"PATH": PATH, **variables}
        try:
            assert environment_printed(real, env) == env
        except OSError:
            return False
        found = environment_printed("./cat", env)  # a shorter name, for which there is always room
        assert {name: found.get(name) for name in env} == env
        return True

    fullest(may_start)


def test_where_no_variable_can_be_added_a_read_that_faces_the_agent_is_shown(sandbox: Sandbox) -> None:
    if not sandbox.has_client:
        pytest.skip("a script takes more room than a program")
    real = shutil.which("cat", path=PATH)
    text = f". ./agent-shell.sh; {real} /dev/null && ./cat ../work/f; exit $?"

    def may_start(variables: dict[str, str]) -> bool:
        env = sandbox.readcache(READCACHE_SESSION="full") | variables
        try:
            ran = start(["bash", "-c", text], env, "pipe", sandbox.shims)
        except OSError:
            return False
        if b"Argument list too long" in ran.err:
            return False
        assert (ran.status, ran.err) == (0, b"")
        assert ran.out.decode() == LINES or ran.out.startswith(b"[FILE_UNCHANGED ")
        return True

    sandbox.reset()
    fullest(may_start)


@pytest.mark.parametrize(
    "variables", [MANY, LONG, pytest.param(MOST, marks=pytest.mark.slow)], ids=["many", "long entry of path", "most"]
)
@pytest.mark.parametrize("way", ["shims", "whole command"])
def test_a_read_that_faces_the_agent_is_the_same(sandbox: Sandbox, way: str, variables: dict[str, str]) -> None:
    sandbox.reset()
    script = "agent-shell.sh" if way == "shims" else "agent-command.sh"
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / script), READCACHE_SESSION="new") | variables
    first, again = (start(["bash", "-c", "cat f; :"], env, "pipe", sandbox.directory) for _ in range(2))
    assert (first.status, first.err, first.out.decode()) == (0, b"", LINES)
    assert again.out.startswith(b"[FILE_UNCHANGED ")


@pytest.mark.parametrize("many", [MANY, pytest.param(MOST, marks=pytest.mark.slow)], ids=["many", "most"])
def test_a_whole_command_has_the_whole_environment(shims: Path, many: dict[str, str]) -> None:
    program = shims / "readcache-run"
    if not program.exists():
        pytest.skip("scripts have none")
    for variables in (many, LONG):
        env = {"PATH": PATH, **variables, "READCACHE_SESSION": "s", "READCACHE_SERVER": "off"}
        words = [str(program), "-c", "exec cat /proc/self/environ"]
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=WATCHDOG)
        assert (done.returncode, done.stderr) == (0, "")
        found = dict(entry.split("=", 1) for entry in done.stdout.split("\0")[:-1])
        assert {name: found.get(name) for name in env} == env
