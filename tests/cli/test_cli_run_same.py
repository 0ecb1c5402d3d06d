"""What a command prints, has and returns is what it does without us: by Python, and by the client of a server."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from readcache.process import failures

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(params=["python", "client"])
def way(request: pytest.FixtureRequest) -> str:
    """Both."""
    return str(request.param)


def test_in_a_deleted_directory_the_command_still_runs(work: Path, run_words: list[str]) -> None:
    (work / "gone").mkdir()
    safe = "PYTHONSAFEPATH=1 "  # or Python looks for modules in a directory that is gone
    script = f"cd gone && rmdir ../gone && {safe}{shlex.join(run_words)} 'cat {work}/f'"
    done = subprocess.run(["bash", "-c", script], capture_output=True)
    assert done.stdout == (work / "f").read_bytes()


COMMANDS = [
    "cat f | head -3",
    "cat nosuch f; exit 4",
    "head -2 f; echo err >&2; cat nosuch",
    "exit 255",
    "nosuchcommand f",
    "cat <<< 'a\nb'; echo 'unclosed",
    "",
    "cd / && pwd && head -c 5 /etc/passwd",
    "echo out; echo err >&2; echo more > g; cat g",
    "--help",
    "ulimit -c; umask; trap; echo $0 $# $SHLVL",
]


def test_a_first_run_prints_and_returns_what_bash_does(run: Run) -> None:
    out, err = subprocess.PIPE, subprocess.STDOUT
    for number, command in enumerate(COMMANDS):
        plain = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        ours = run("run", "-c", command, stderr=err, env={**os.environ, "READCACHE_SESSION": f"s{number}"})
        assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout), command


def test_a_stderr_of_its_own_stays_apart(run: Run) -> None:
    reply = run("run", "-c", "head -1 f; echo err >&2; head -2 f")
    assert (reply.stdout.count(b"\n"), reply.stderr) == (3, b"err\n")


@pytest.mark.parametrize("command", ["echo a > g; exit 3", "cat f; exit 4"])
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_stay_closed(work: Path, run_words: list[str], command: str, closed: str) -> None:
    plain = subprocess.run(["bash", "-c", f"bash -c '{command}' {closed}"], capture_output=True, cwd=work)
    ours = f"{shlex.join(run_words)} '{command}' {closed}"
    wrapped = subprocess.run(["bash", "-c", ours], capture_output=True, cwd=work)
    assert (wrapped.returncode, wrapped.stdout, wrapped.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert failures.noted() == []


def test_switched_off_the_commands_environment_is_unchanged(run: Run) -> None:
    assert b"READCACHE_INSIDE" in run("run", "-c", "env").stdout
    assert b"READCACHE_INSIDE" not in run("run", "-c", "env", env={**os.environ, "READCACHE": "off"}).stdout


@pytest.mark.parametrize("rest", ["", "; head -1 f", "; echo > g"])
def test_environment_descriptors_and_stdin_are_passed_on(run: Run, rest: str) -> None:
    env = {k: v for k, v in os.environ.items() if k != "LANG" and not k.startswith("LC_")}
    read_end, write_end = os.pipe()
    command = f'read x; echo "$x $MINE ${{LC_CTYPE-unset}}" >&{write_end}{rest}'
    with os.fdopen(read_end, "rb") as result:
        run("run", "-c", command, env={**env, "MINE": "\udcff 1"}, pass_fds=(write_end,), stdin=b"typed\n")
        os.close(write_end)
        assert result.read() == b"typed \xff 1 unset\n"
