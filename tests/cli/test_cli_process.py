"""The command's place among processes: who kills whom, whose the terminal is, what is found under which name."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.files import WATCHDOG, wait_for, wait_until

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(params=["python", "client"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways have the same streams, signals and status."""
    return str(request.param)


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the system tells no child of its parent's death")


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


# ------------------------------------------------------------ a terminal


def test_a_person_at_a_terminal_is_told_once_what_is_kept(start: Start, way: str, work: Path) -> None:
    if way == "client":
        pytest.skip("a harness starts it, and no person")
    told = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        with start("run", "-c", "cat f", stderr=theirs) as process:
            out, _err = process.communicate(timeout=WATCHDOG)
        assert out
        told.append(os.read(ours, 4096).decode() if select.select([ours], [], [], 0)[0] else "")
        os.close(theirs)
        os.close(ours)
    store = work.parent / "state/readcache/readcache.db"
    assert f"in {store}, for 30 days after a session's last call; `readcache clear` deletes it" in told[0]
    assert told[0].count("\n") == 1
    assert told[1] == ""


def test_an_agent_is_not_told_what_is_kept(start: Start) -> None:
    with start("run", "-c", "cat f") as process:
        assert process.communicate(timeout=WATCHDOG)[1] == b""


# ------------------------------------------------------------ a kill


@LINUX
@pytest.mark.parametrize("first", ["cat f", "echo x > g"])
def test_when_we_are_killed_nothing_more_of_the_command_happens(start: Start, work: Path, first: str) -> None:
    os.mkfifo(work / "gate")
    with start("run", "-c", f"{first}; echo $$ > pid; read x < gate; touch after") as process:
        wait_until(lambda: (work / "pid").exists() and (work / "pid").read_text().endswith("\n"), "the process id")
        bash = int((work / "pid").read_text())
        assert bash != process.pid
        assert is_alive(bash)
        process.kill()
        process.communicate(timeout=WATCHDOG)
    wait_until(lambda: not is_alive(bash), "the end of the command")
    assert not (work / "after").exists()


@LINUX
def test_what_the_command_left_in_the_background_outlives_us_as_it_outlives_bash(start: Start, work: Path) -> None:
    os.mkfifo(work / "gate")
    command = "cat f; { read x < gate; touch after; } >/dev/null 2>&1 & echo $! > pid; wait"
    with start("run", "-c", command) as process:
        wait_until(lambda: (work / "pid").exists() and (work / "pid").read_text().endswith("\n"), "the process id")
        process.kill()
        process.communicate(timeout=WATCHDOG)
    (work / "gate").write_text("\n")
    wait_for(work / "after")


# ------------------------------------------------------------ a terminal


def on_a_terminal(*words: str, awaited: bytes = b"", typed: bytes = b"") -> bytes:
    """What the words print on a terminal of their own, where `typed` is typed after `awaited` came."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvp(words[0], words)
    out, deadline = b"", time.monotonic() + WATCHDOG
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                chunk = os.read(terminal, 1 << 16)
            except OSError:  # Linux says so that nobody has the other end any more
                break
            if not chunk:
                break
            out += chunk
            if typed and awaited in out:
                os.write(terminal, typed)
                typed = b""
        else:
            os.kill(pid, 9)
            pytest.fail(f"it waits for ever: {out!r}")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return out.replace(b"\r\n", b"\n")


pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # of Python 3.12


@pytest.mark.parametrize(
    "command",
    ["head -2 f; [ -t 1 ] && echo terminal; [ -t 2 ] && echo terminal", "stty size"],
)
def test_on_a_terminal_a_command_prints_what_it_prints_without_us(command: str, run_words: list[str]) -> None:
    on_a_terminal(*run_words, "true")  # which says once what is kept
    for _ in range(3):
        assert on_a_terminal(*run_words, command) == on_a_terminal("bash", "-c", command)


@pytest.mark.parametrize("first", ["head -1 f", "head -1 f | tee g"])
def test_a_prompt_on_a_terminal_comes_before_the_answer_is_typed(first: str, run_words: list[str]) -> None:
    command = f"{first}; read -p 'Overwrite? ' x; echo got $x"
    out = on_a_terminal(*run_words, command, awaited=b"Overwrite?", typed=b"yes\n")
    assert out.endswith(b"got yes\n")


def test_what_a_command_wrote_on_a_terminal_is_on_record(run: Run, work: Path, run_words: list[str]) -> None:
    whole = (work / "f").read_bytes()
    assert run("run", "-c", "cat f").stdout == whole
    assert b"line 1" in on_a_terminal(*run_words, "sed -i 's/line/LINE/;s/LINE/line/' f; head -1 f")
    assert run("run", "-c", "cat f").stdout == whole
    assert b"LINE" in run("explain", "f").stdout.partition(b"writes seen:")[2]


def test_what_a_command_wrote_that_reads_no_plain_file_is_on_record(run: Run, work: Path) -> None:
    whole = (work / "f").read_bytes()
    (work / "status").symlink_to("/proc/self/status")
    assert run("run", "-c", "cat f").stdout == whole
    assert run("run", "-c", "head -n 1 status; sed -i 's/line/LINE/;s/LINE/line/' f").stdout.startswith(b"Name:")
    assert run("run", "-c", "cat f").stdout == whole
    assert b"LINE" in run("explain", "f").stdout.partition(b"writes seen:")[2]
