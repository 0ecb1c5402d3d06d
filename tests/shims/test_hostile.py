"""Situations made to let a shim be noticed, or a marker land where the agent does not read."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import LINES, Ran, Sandbox, no_shell_above, script, start

pytestmark = pytest.mark.slow  # a sandbox in which something fails, in every shell

MARKER = b"UNCHANGED "
WAYS = ["agent-shell.sh", "agent-command.sh"]


@pytest.fixture(autouse=True)
def _fresh(sandbox: Sandbox) -> None:
    sandbox.reset()


def by(sandbox: Sandbox, way: str, **more: str) -> dict[str, str]:
    return sandbox.readcache(BASH_ENV=str(sandbox.shims / way), **more)


def both(sandbox: Sandbox, command: str, stdout: str = "merged", **more: str) -> tuple[Ran, Ran]:
    words = ["bash", "-c", command]
    return sandbox.run(words, sandbox.by_bash_env(**more), stdout), sandbox.run(words, sandbox.env(), stdout)


# ------------------------------------------------------------ who calls, and where it goes


@pytest.mark.parametrize("answer", ["cat f", "exec cat f", "exec env cat f"])
@pytest.mark.parametrize("call", ["./answer", "exec ./answer"])
def test_a_program_that_the_shell_became_by_exec_is_not_cut(sandbox: Sandbox, answer: str, call: str) -> None:
    """With the shims on PATH as well, a script that ends by `exec cat f` is a `cat` with the shell's own pid."""
    script(sandbox.directory / "answer", f"#!/bin/sh\n{answer}\n")
    env = sandbox.readcache(PATH=f"{sandbox.shims}:{sandbox.env()['PATH']}")
    words = ["bash", "-c", f". {sandbox.shims}/agent-shell.sh; {call}"]
    assert start(words, env, "pipe", sandbox.directory).out.decode() == LINES


@pytest.mark.parametrize("shell", ["bash -l", "sh -l", "bash --login"])
@pytest.mark.parametrize("outer", ["-lc", "-c"])
def test_a_login_shell_of_the_agents_own_in_an_empty_environment_is_not_the_harnesss(
    sandbox: Sandbox, shell: str, outer: str
) -> None:
    """Both read the profile, and only one of them prints what the agent reads."""
    home = sandbox.directory.parent
    named = sandbox.readcache()
    exports = "".join(f"export {name}='{value}'\n" for name, value in named.items() if name.startswith("READCACHE"))
    (home / ".profile").write_text(f"{exports}. '{sandbox.shims}/agent-shell.sh'\n")
    command = f"env -i HOME={home} {shell} -c 'cat f' >out; x=$(timeout 600 env -i HOME={home} {shell} -c 'cat f'); "
    words = [*no_shell_above(), "env", "-i", f"HOME={home}", "bash", outer, command + 'echo "$x" >word; cat f; :']
    try:
        out = start(words, {"PATH": os.environ["PATH"]}, "pipe", sandbox.directory).out
    finally:
        (home / ".profile").unlink()
    assert (sandbox.directory / "out").read_text() == (sandbox.directory / "word").read_text() == LINES
    assert (MARKER in out) == (outer == "-lc")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["0", "off", "nonsense", ""])
def test_switched_off_bash_and_readcache_do_not_start_each_other_for_ever(
    sandbox: Sandbox, way: str, mode: str
) -> None:
    """Bash, readcache, bash, readcache, …"""
    words = ["timeout", "600", "bash", "-c", "cat f; bash -c 'cat f'; env | grep -c READCACHE_B"]
    done = start(words, by(sandbox, way, READCACHE=mode), "pipe", sandbox.directory)
    assert (done.out.decode(), done.err) == (LINES * 2 + "0\n", b"")


@pytest.mark.parametrize("way", WAYS)
def test_without_a_session_bash_and_readcache_do_not_start_each_other_for_ever(sandbox: Sandbox, way: str) -> None:
    words = ["timeout", "600", "bash", "-c", "cat f"]
    env = by(sandbox, way, READCACHE_SESSION="")
    assert start(words, env, "pipe", sandbox.directory).out.decode() == LINES


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["script", "answer", "nobody reads"])
def test_an_inner_bash_of_an_unserved_shell_is_not_cut(sandbox: Sandbox, way: str, kind: str) -> None:
    """A bash in it sees BASH_ENV as well."""
    inner = "bash -c 'cat f; :' >out; bash -c 'cat f'; x=$(bash -c 'cat f; :'); echo \"$x\" >word"
    (sandbox.directory / "run").write_text(inner)
    words = ["bash", "run"] if kind == "script" else ["bash", "-c", inner]
    if kind == "answer":
        words[2] = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; {inner}"
    if kind == "nobody reads":
        words = ["sh", "-c", 'bash -c "$0" >/dev/null', inner]
    out = start(words, by(sandbox, way), "pipe", sandbox.directory).out.decode()
    assert out.endswith("" if kind == "nobody reads" else LINES)
    assert MARKER.decode() not in out
    assert (sandbox.directory / "out").read_text() == (sandbox.directory / "word").read_text() == LINES


def test_bash_may_have_been_given_options_with_arguments(sandbox: Sandbox) -> None:
    for options in (["-o", "pipefail"], ["--norc", "--noprofile"], ["-euo", "pipefail"], ["+e"]):
        sandbox.reset()
        got = start(["bash", *options, "-c", "cat f; :"], sandbox.by_bash_env(), "pipe", sandbox.directory)
        assert MARKER in got.out, options


# ------------------------------------------------------------ what is read


@pytest.mark.parametrize("command", ["cat /dev/stdin <f; :", "cat /dev/fd/0 <f; :", "head -n 60 /proc/self/fd/0 <f; :"])
def test_stdin_by_any_name_is_stdin(sandbox: Sandbox, command: str) -> None:
    ours, plain = both(sandbox, command)
    assert ours.out == plain.out


def test_a_read_of_proc_self_names_the_shell_as_its_parent(sandbox: Sandbox) -> None:
    out = start(["bash", "-c", "cat /proc/self/stat; echo $$"], sandbox.by_bash_env(), "pipe", sandbox.directory).out
    stat, pid = out.decode().splitlines()
    assert stat.split()[3] == pid


@pytest.mark.parametrize("name", ["pr/self/stat", "to_stat", "sub/../pr/self/stat", "/dev/../proc/self/stat"])
def test_a_read_of_proc_by_a_link_names_the_shell_as_its_parent(sandbox: Sandbox, name: str) -> None:
    (sandbox.directory / "pr").symlink_to("/proc")
    (sandbox.directory / "to_stat").symlink_to("pr/self/stat")
    env = sandbox.by_bash_env()
    stat, pid = start(["bash", "-c", f"cat {name}; echo $$"], env, "pipe", sandbox.directory).out.decode().splitlines()
    assert stat.split()[3] == pid


@pytest.mark.parametrize("kind", ["sandbox", "compiled"])
@pytest.mark.parametrize("closed", ["", "<&-", "2>&-", "<&- 2>&-"])
def test_the_real_tool_has_no_descriptor_more_or_less(
    request: pytest.FixtureRequest, kind: str, closed: str, tmp_path: Path
) -> None:
    chosen: Sandbox = request.getfixturevalue(kind)
    text = "#!/bin/sh\necho /proc/self/fd/*\n[ -e /proc/self/fd/0 ] && read -r x && echo $x\n"
    fake = script(tmp_path / "bin" / "cat", text)
    path = f"{fake.parent}:{chosen.env()['PATH']}"
    for command in (f"cat f {closed} | tee out", f"sh -c 'cat f {closed}; cat {closed}'; cat f {closed} >out"):
        record = f". {chosen.shims}/agent-shell.sh; "
        ours = chosen.run(["sh", "-c", record + command], chosen.readcache(PATH=path), "pipe")
        plain = chosen.run(["sh", "-c", command], chosen.env(PATH=path), "pipe")
        assert (ours.out, ours.err, ours.files) == (plain.out, plain.err, plain.files)


# ------------------------------------------------------------ signals


def _wait_for_the_tool(ran: subprocess.Popen[bytes]) -> None:
    """Python's own start prints a traceback when it is interrupted; once the tool was started, nothing does. Of a tool
    that ended between two looks its output is left."""
    assert ran.stdout is not None
    process_directory = Path(f"/proc/{ran.pid}")
    while not (
        "cli/shim_entry.py" in (process_directory / "cmdline").read_text()
        and ((process_directory / f"task/{ran.pid}/children").read_text() or select.select([ran.stdout], [], [], 0)[0])
    ):
        time.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
@pytest.mark.parametrize("way", WAYS)
def test_a_signal_at_any_moment_ends_the_tool_with_an_empty_stderr(sandbox: Sandbox, number: int, way: str) -> None:
    for delay in (0.01, 0.03, 0.05, 0.07, 0.1, 0.4):
        sandbox.reset()
        (sandbox.directory / "big").write_text(LINES * 1000)  # more than the pipe holds, so that it is still at it
        with subprocess.Popen(
            ["bash", "-c", "sed -n p big"],
            env=by(sandbox, way),
            cwd=sandbox.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as ran:
            if number == signal.SIGINT and not sandbox.has_client:
                _wait_for_the_tool(ran)
            time.sleep(delay)
            os.killpg(ran.pid, number)
            out, err = ran.communicate(timeout=WATCHDOG)
        assert err == b"", delay
        assert (LINES * 1000).startswith(out.decode())
        if out.decode() != LINES * 1000:  # the tool had ended, and all was shown: then it may be over
            assert ran.returncode == -number, delay


@pytest.mark.parametrize(("victim", "shown"), [("$$", 30), ("$PPID", 0)])
def test_of_a_tool_or_a_shim_that_was_killed_no_more_is_remembered_than_was_shown(
    sandbox: Sandbox, victim: str, shown: int
) -> None:
    fake = script(sandbox.directory / "bin" / "cat", f'#!/bin/sh\nhead -n 30 "$@"\nkill -9 {victim}\nsleep 0.2\n')
    env = sandbox.by_bash_env()
    faked = env | {"PATH": f"{fake.parent}:{env['PATH']}"}
    lines = [f"line {n}, which no other test shows to {victim}\n" for n in range(1, 41)]
    (sandbox.directory / "own").write_text("".join(lines))
    got = start(["bash", "-c", "cat own; echo $?"], faked, "pipe", sandbox.directory)
    assert got.out.decode() == "".join(lines[:shown]) + "137\n"
    again = start(["bash", "-c", "cat own; :"], env, "pipe", sandbox.directory).out.decode()
    assert again.endswith("".join(lines[shown:]))


# ------------------------------------------------------------ narrow places


LIMITS = ["-d 3000", "-d 9000", "-d 12000", "-d 16000", "-f 0", "-f 1", "-s 200", "-n 13", "-n 16", "-v 9000"]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("way", WAYS)
def test_under_any_limit_the_tool_does_what_it_does(sandbox: Sandbox, limit: str, way: str) -> None:
    words = ["sh", "-c", f"ulimit {limit}; exec bash -c 'cat sub/g; sed -n 5,9p sub/g; :'"]
    ours, plain = sandbox.run(words, by(sandbox, way), "merged"), sandbox.run(words, sandbox.env(), "merged")
    assert (ours.out, ours.status) == (plain.out, plain.status)


def test_where_no_pipe_can_be_made_the_tool_itself_still_runs(sandbox: Sandbox) -> None:
    for limit in range(4 if sandbox.has_client else 12, 24):  # a script needs the eleventh
        command = f"ulimit -n {limit}; sed -n 1,30p sub/g; :"
        ours, plain = both(sandbox, command)
        assert ours.out == plain.out, limit


NO_USE = [pytest.param("locked", marks=pytest.mark.slow), "corrupt", "directory", "fifo", "empty", "not ours"]


@pytest.mark.parametrize("kind", NO_USE)
def test_a_store_that_is_no_use_costs_no_byte(sandbox: Sandbox, kind: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    if kind == "directory":
        store.mkdir()
    elif kind == "fifo":
        os.mkfifo(store)
    elif kind == "corrupt":
        store.write_bytes(sandbox.primed.read_bytes()[:20000] + os.urandom(5000))
    elif kind == "locked":
        shutil.copy(sandbox.primed, store)
    else:
        store.write_text("" if kind == "empty" else LINES)
    env = sandbox.by_bash_env(XDG_STATE_HOME=str(tmp_path), READCACHE_STORE=str(store))
    with contextlib.ExitStack() as until_then:
        if kind == "locked":
            other = until_then.enter_context(contextlib.closing(sqlite3.connect(store, isolation_level=None)))
            other.execute("BEGIN EXCLUSIVE")
        done = start(["bash", "-c", "cat f; exit 3"], env, "merged", sandbox.directory)
    assert (done.out.decode(), done.status) == (LINES, 3)


def test_many_shells_at_once_in_one_session(sandbox: Sandbox) -> None:
    """A marker is told to nobody before somebody was shown the bytes; and whoever insists is served."""
    env, pipe = sandbox.by_bash_env(), subprocess.PIPE
    words = ["bash", "-c", "cat sub/g; :"]
    running = [subprocess.Popen(words, env=env, cwd=sandbox.directory, stdout=pipe, stderr=pipe) for _ in range(6)]
    outs = [process.communicate(timeout=WATCHDOG) for process in running]
    plain = start(words, sandbox.env(), "pipe", sandbox.directory).out
    assert {err for _, err in outs} == {b""}
    assert any(out == plain for out, _ in outs)
    assert all(out == plain or (MARKER in out and out.count(b"\n") == 1) for out, _ in outs)


def test_set_x_in_a_bash_called_sh_prints_nothing_of_the_shim(sandbox: Sandbox, tmp_path: Path) -> None:
    """`export SHELLOPTS; set -x` goes into every bash below."""
    (tmp_path / "sh").symlink_to(shutil.which("bash") or "/bin/bash")
    text = (sandbox.shims / (".tool/cat" if sandbox.has_client else "cat")).read_text().partition("\n")[2]
    changed = script(tmp_path / "other" / "cat", f"#!{tmp_path}/sh\n{text}")
    words = ["bash", "-c", "export SHELLOPTS; set -xeuf -o pipefail; $CAT f >out; x=$($CAT f); $CAT f | head -n 1"]
    ours = sandbox.run(words, sandbox.by_bash_env(CAT=str(changed)), "pipe")
    plain = sandbox.run(words, sandbox.env(CAT=str(changed)), "pipe")
    assert (ours.out, ours.status, ours.files) == (plain.out, plain.status, plain.files)
    assert sorted(ours.err.splitlines()) == sorted(plain.err.splitlines())
    assert b"readcache" not in ours.err


# ------------------------------------------------------------ other shells


@pytest.mark.parametrize("shell", ["zsh", "ksh", "mksh", "busybox sh", "dash", "bash --posix"])
def test_in_other_shells_only_a_read_by_the_agent_is_cut(sandbox: Sandbox, shell: str) -> None:
    """They find the shims on PATH, as `sh` does."""
    name, *options = shell.split()
    if (real := shutil.which(name)) is None:
        pytest.skip(f"no {name} here")
    words = [real, *options]
    if subprocess.run([*words, "-c", "cat /dev/null"], env={"PATH": "/nowhere"}, capture_output=True).returncode == 0:
        pytest.skip(f"this {name} has tools of its own, and looks for none on PATH")
    record = f". {sandbox.shims}/agent-shell.sh; "
    for command in ("cat f >out; cat f | tail -n 1; x=$(cat f); echo ${#x}; ( cat f ) >>out", "cat f nosuch; exit 3"):
        ours = sandbox.run([*words, "-c", record + command], sandbox.readcache(), "merged")
        plain = sandbox.run([*words, "-c", command], sandbox.env(), "merged")
        assert (ours.out, ours.status, ours.files) == (plain.out, plain.status, plain.files)
    assert MARKER in sandbox.run([*words, "-c", f"{record} cat f; :"], sandbox.readcache(), "pipe").out
