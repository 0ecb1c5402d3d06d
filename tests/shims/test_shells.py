"""The shims in every kind of shell that a harness keeps: for one command, at login, on a terminal, in tmux."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import LINES, Sandbox, no_shell_above, start

MARKER = "[FILE_UNCHANGED "
DONE = "all_is_done"


class Talk:
    """A shell that stays, and that is told one command after the other."""

    def __init__(self, write: int, read: int) -> None:
        self.write, self.read = write, read

    def say(self, command: str) -> str:
        """What the shell prints until the command has ended."""
        os.write(self.write, f"{command}\necho {DONE[:5]}'{DONE[5:]}'\n".encode())
        out, deadline = "", time.monotonic() + WATCHDOG
        while DONE not in out:
            assert time.monotonic() < deadline, out
            if select.select([self.read], [], [], 0.2)[0]:
                out += os.read(self.read, 1 << 16).decode().replace("\r\n", "\n")
        return out.partition(DONE)[0]


@contextlib.contextmanager
def terminal(words: list[str], sandbox: Sandbox, env: dict[str, str]) -> Iterator[Talk]:
    mine, theirs = os.openpty()
    with subprocess.Popen(
        words, env=env, cwd=sandbox.directory, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as shell:
        os.close(theirs)
        yield Talk(mine, mine)
        os.write(mine, b"exit\n")
        with contextlib.suppress(OSError):
            while os.read(mine, 1 << 16):
                pass
        shell.wait(WATCHDOG)
    os.close(mine)


@contextlib.contextmanager
def over_pipes(words: list[str], sandbox: Sandbox, env: dict[str, str]) -> Iterator[Talk]:
    """As `docker exec -i` and harnesses without a terminal keep one."""
    with subprocess.Popen(
        words, env=env, cwd=sandbox.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        yield Talk(shell.stdin.fileno(), shell.stdout.fileno())
        shell.stdin.close()
        shell.wait(WATCHDOG)


def eval_line(sandbox: Sandbox) -> str:
    return f". '{sandbox.shims}/agent-shell.sh'"


def assert_shortened_where_the_agent_reads_and_nowhere_else(talk: Talk, sandbox: Sandbox) -> None:
    assert MARKER in talk.say("cat f")
    assert LINES in talk.say("cat f")  # it insists
    talk.say("cat f >copy; { cat f; head -n 3 f; } >group; x=$(cat f); printf '%s\\n' \"$x\" >word")
    assert (sandbox.directory / "copy").read_text() == (sandbox.directory / "word").read_text() == LINES
    assert (sandbox.directory / "group").read_text() == LINES + "".join(LINES.splitlines(keepends=True)[:3])
    assert "60\n" in talk.say("cat f | wc -l")
    assert "3\n" in talk.say("sh -c 'head -n 3 f | wc -l'")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["bash", "--norc", "-i"], ["bash", "--norc"], ["sh", "-i"]])
def test_a_shell_that_stays_on_a_terminal(sandbox: Sandbox, words: list[str]) -> None:
    sandbox.reset()
    with terminal(words, sandbox, sandbox.readcache()) as talk:
        talk.say(eval_line(sandbox))
        assert_shortened_where_the_agent_reads_and_nowhere_else(talk, sandbox)


@pytest.mark.parametrize("words", [["bash"], ["bash", "--noprofile", "-l"], ["sh"]])
def test_a_shell_that_stays_at_the_end_of_pipes(sandbox: Sandbox, words: list[str]) -> None:
    sandbox.reset()
    with over_pipes(words, sandbox, sandbox.readcache()) as talk:
        talk.say(eval_line(sandbox))
        assert_shortened_where_the_agent_reads_and_nowhere_else(talk, sandbox)


def test_bash_that_stays_gets_it_by_bash_env_alone(sandbox: Sandbox) -> None:
    sandbox.reset()
    with over_pipes(["bash"], sandbox, sandbox.by_bash_env()) as talk:
        assert_shortened_where_the_agent_reads_and_nowhere_else(talk, sandbox)


def test_after_a_change_of_path_bash_forgets_the_shims_and_shows_everything(sandbox: Sandbox) -> None:
    sandbox.reset()
    with over_pipes(["bash"], sandbox, sandbox.by_bash_env()) as talk:
        assert MARKER in talk.say("cat f")
        assert LINES in talk.say("PATH=/bin:$PATH; cat f; cat f")
        assert MARKER not in talk.say("cat f")


def test_a_login_shell_whose_profile_resets_path(sandbox: Sandbox) -> None:
    sandbox.reset()
    profile = sandbox.directory.parent / ".bash_profile"
    profile.write_text("PATH=/usr/bin:/bin\n")
    try:
        assert MARKER in start(["bash", "-lc", "cat f"], sandbox.by_bash_env(), "pipe", sandbox.directory).out.decode()
    finally:
        profile.unlink()


@pytest.mark.parametrize("words", [["bash", "-lc"], ["sh", "-lc"]])
def test_an_empty_environment_with_the_exports_in_a_profile(sandbox: Sandbox, words: list[str]) -> None:
    """`env -i`: nothing is left but what the login shell reads."""
    sandbox.reset()
    profile = sandbox.directory.parent / ".profile"
    named = sandbox.readcache()
    exports = "".join(f"export {name}='{value}'\n" for name, value in named.items() if name.startswith("READCACHE"))
    profile.write_text(exports + eval_line(sandbox) + "\n")
    try:
        words = ["env", "-i", f"HOME={sandbox.directory.parent}", *words, "cat f"]
        got = start([*no_shell_above(), *words], {"PATH": os.environ["PATH"]}, "pipe", sandbox.directory)
    finally:
        profile.unlink()
    assert MARKER in got.out.decode()


def test_with_an_empty_environment_and_no_profile_nothing_happens(sandbox: Sandbox) -> None:
    sandbox.reset()
    got = start(["env", "-i", "bash", "-c", "cat f"], sandbox.by_bash_env(), "pipe", sandbox.directory)
    assert got.out.decode() == LINES


@pytest.mark.parametrize("options", [["-e"], ["-u"], ["-eu", "-o", "pipefail"], ["-x"], ["-f"], ["--posix"], ["+h"]])
def test_options_of_bash_change_nothing(sandbox: Sandbox, options: list[str]) -> None:
    command = "cat f | head -n 2; cat nosuch || echo; nl f >out; set -o | md5sum; echo $0 $# $-"
    words = ["bash", *options, "-c", command]
    for env in (sandbox.by_bash_env(), sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))):
        ours, plain = sandbox.run(words, env), sandbox.run(words, sandbox.env())
        assert (ours.out, ours.status, ours.files) == (plain.out, plain.status, plain.files)
        # `bash -x` tells of the two ends of a pipeline as it comes
        assert sorted(ours.err.splitlines()) == sorted(plain.err.splitlines())


def test_arguments_of_a_command_are_passed_on(sandbox: Sandbox) -> None:
    words = ["bash", "-c", 'cat sub/g; echo "$0" "$@" $#', "name", "one two", "three"]
    for way in ("agent-shell.sh", "agent-command.sh"):
        ours = sandbox.run(words, sandbox.readcache(BASH_ENV=str(sandbox.shims / way)))
        assert ours.out == sandbox.run(words, sandbox.env()).out


def test_the_whole_command_way_understands_pipelines(sandbox: Sandbox) -> None:
    sandbox.reset()
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))
    outs = [
        start(["bash", "-c", command], env, "merged", sandbox.directory).out.decode()
        for command in ("nl -ba f | sed -n '10,30p'", "cat nosuch", "cat f | nl -ba | sed -n '10,30p'")
    ]
    assert re.match(
        r"\[LEFT_OUT \S+ f lines 10-30, same as above in .* without numbers; repeat this call to see\]\n$", outs[0]
    )
    assert outs[1] == "bash: line 1: cat: nosuch: No such file or directory\n".removeprefix("bash: line 1: ")
    assert outs[2].startswith("[")
    assert outs[2].count("\n") == 1


def test_the_whole_command_way_leaves_the_shells_name_in_its_messages(sandbox: Sandbox) -> None:
    words = ["/bin/bash", "-c", "nosuchprogram; cat f <nosuch; head -n 1 f"]
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))
    ours, plain = sandbox.run(words, env), sandbox.run(words, sandbox.env())
    assert (ours.out, ours.err) == (plain.out, plain.err)
    assert ours.err.startswith(b"/bin/bash: line 1: nosuchprogram")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_a_repeated_read_in_tmux_is_cut(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.reset()
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    env = sandbox.readcache()

    def do(*words: str) -> str:
        return subprocess.run(
            [*tmux, *words], env=env, capture_output=True, text=True, check=True, timeout=WATCHDOG
        ).stdout

    do("new-session", "-d", "-x", "150", "-y", "200", "-c", str(sandbox.directory), "bash --norc")
    try:
        do("send-keys", f"{eval_line(sandbox)}; cat f; cat f >copy; echo {DONE[:5]}'{DONE[5:]}'", "Enter")
        deadline = time.monotonic() + WATCHDOG
        while DONE not in (screen := do("capture-pane", "-p", "-J")):
            assert time.monotonic() < deadline, screen
            time.sleep(0.05)
    finally:
        do("kill-server")
    assert MARKER in screen
    assert "line 30 of" not in screen
    assert (sandbox.directory / "copy").read_text() == LINES


def test_in_a_shell_that_stays_a_later_command_may_point_at_an_earlier_one(sandbox: Sandbox) -> None:
    for env, first in ((sandbox.by_bash_env(), ":"), (sandbox.readcache(), eval_line(sandbox))):
        sandbox.reset()
        with over_pipes(["bash"], sandbox, env) as talk:
            talk.say(first)
            assert talk.say("cat sub/g").startswith("1: some other words\n")
            assert MARKER in talk.say("cat sub/g")
