"""The agent's own shell becomes another bash, as a host does that reads a snapshot of the user's shell first."""

from __future__ import annotations

import shlex

import pytest

from readcache.cli.main import main
from tests.shims.sandbox import LINES, Sandbox, start

pytestmark = pytest.mark.slow  # many shells

WAYS = ("agent-shell.sh", "agent-command.sh")
# As Codex CLI 0.169 puts it: the environment is kept by hand, since the snapshot may change it.
SNAPSHOT = """kept_set="${{BASH_ENV+x}}"
kept="${{BASH_ENV-}}"
if . ./snapshot >/dev/null 2>&1; then :; fi
if [ -n "$kept_set" ]; then export BASH_ENV="$kept"; else unset BASH_ENV; fi
exec '/bin/bash' -c {command}"""


def replaced(command: str) -> str:
    """The wrapped command."""
    return SNAPSHOT.format(command=shlex.quote(command))


def with_snapshot(sandbox: Sandbox) -> None:
    sandbox.reset()
    (sandbox.directory / "snapshot").write_text("alias ll='ls -l'\nexport FROM_SNAPSHOT=yes\n")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrapped", [replaced("cat f"), "exec bash -c 'cat f'", replaced("exec bash -c 'cat f'")])
def test_a_bash_that_the_shell_became_is_served(sandbox: Sandbox, way: str, wrapped: str) -> None:
    with_snapshot(sandbox)
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
    ran = start(["bash", "-c", wrapped], env, "pipe", sandbox.directory)
    assert ran.out.startswith(b"[")
    assert LINES.encode() not in ran.out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "command",
    [
        "cat f >copy; cat sub/g | wc -l",
        "echo $BASH_ENV $READCACHE_BASH_ENV; env | grep -c BASH_ENV",
        "bash -c 'env | grep -c BASH_ENV'",
        "./script; make -s",
        "exec ./script",
        "exec bash ./script -c x",
        "exec bash -c 'cat f' >log",
        "set | grep ^readcache_",
    ],
)
def test_all_else_is_as_without_shims(sandbox: Sandbox, way: str, command: str) -> None:
    outs = []
    for env in (sandbox.readcache(BASH_ENV=str(sandbox.shims / way)), sandbox.env()):
        with_snapshot(sandbox)
        ran = start(["bash", "-c", replaced(command)], env, "pipe", sandbox.directory)
        outs.append((ran.out, ran.err, ran.status, sandbox.files()))
    assert outs[0] == outs[1]


@pytest.mark.parametrize("command", ["cat f | cat", "bash -c 'cat f'", "bash -c 'cat f; :'", "sh -c 'cat f; :'"])
def test_only_that_bash_itself_finds_the_shims(sandbox: Sandbox, command: str) -> None:
    with_snapshot(sandbox)
    ran = start(["bash", "-c", replaced(command)], sandbox.by_bash_env(), "pipe", sandbox.directory)
    assert ran.out == LINES.encode()


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_such_a_bash_became_is_not_served(sandbox: Sandbox, way: str) -> None:
    with_snapshot(sandbox)
    (sandbox.directory / "tool").write_text("#!/usr/bin/env python3\nimport subprocess\nsubprocess.run(['cat', 'f'])\n")
    (sandbox.directory / "tool").chmod(0o755)
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way), PATH=f"{sandbox.shims}:{sandbox.env()['PATH']}")
    ran = start(["bash", "-c", replaced("exec ./tool")], env, "pipe", sandbox.directory)
    assert ran.out == LINES.encode()


@pytest.mark.parametrize("way", WAYS)
def test_what_a_harness_parses_is_left_alone_there_too(sandbox: Sandbox, way: str) -> None:
    with_snapshot(sandbox)
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
    command = replaced("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat f")
    ran = start(["bash", "-c", command], env, "pipe", sandbox.directory)
    assert ran.out.endswith(LINES.encode())


@pytest.mark.parametrize("way", WAYS)
def test_an_image_that_has_a_bash_env_keeps_it(sandbox: Sandbox, way: str) -> None:
    outs = []
    for more in ({}, {"shims": str(sandbox.shims / way)}):
        with_snapshot(sandbox)
        image = sandbox.directory / "image.sh"
        image.write_text("of_image=here\n")
        env = sandbox.env(BASH_ENV=str(image))
        if more:
            env = sandbox.readcache(BASH_ENV=more["shims"], READCACHE_BASH_ENV=str(image))
        command = replaced("echo $of_image; bash -c 'echo $of_image $BASH_ENV'")
        outs.append(start(["bash", "-c", command], env, "pipe", sandbox.directory).out)
    assert outs[0] == outs[1]
    assert outs[0].startswith(b"here\nhere ")


@pytest.mark.parametrize("way", WAYS)
def test_the_session_is_the_one_that_a_hosts_variable_names(sandbox: Sandbox, way: str) -> None:
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way), READCACHE_SESSION_FROM="HOSTS_ID")
    del env["READCACHE_SESSION"]
    shown = {}
    for session in ("s", "another", ""):  # `f` was shown in "s"
        with_snapshot(sandbox)
        shown[session] = start(["bash", "-c", "cat f"], env | {"HOSTS_ID": session}, "pipe", sandbox.directory).out
    assert shown["s"].startswith(b"[")
    assert shown["another"] == shown[""] == LINES.encode()


def test_env_passes_on_the_name_of_the_hosts_variable(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("READCACHE_SESSION_FROM", "HOSTS_ID")
    monkeypatch.setenv("HOSTS_ID", "conversation 7")
    capfd.readouterr()
    assert main(["shims", "env", str(sandbox.shims), "--launch"]) == 0
    told = capfd.readouterr().out
    assert "export READCACHE_SESSION_FROM=HOSTS_ID\n" in told
    assert "READCACHE_SESSION=" not in told
    assert main(["doctor"]) in (0, 1)
    line = next(line for line in capfd.readouterr().out.splitlines() if line.split()[1] == "session")
    assert "conversation 7 (as HOSTS_ID says)" in line
