"""Signals, streams that close, processes that stay: nothing here measures time, everything waits for a sign."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.files import WATCHDOG, wait_for

pytestmark = pytest.mark.slow  # waits for signals at many moments

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(params=["python", "client"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways have the same streams, signals and status."""
    return str(request.param)


@pytest.mark.parametrize(
    ("prefix", "number"),
    [
        ("", signal.SIGTERM),
        ("cat f; ", signal.SIGTERM),
        ("cat f; ", signal.SIGKILL),
    ],
)
def test_a_command_that_dies_of_a_signal_gives_us_its_status(
    run: Run, work: Path, prefix: str, number: signal.Signals
) -> None:
    reply = run("run", "-c", f"ulimit -c 0; {prefix}kill -{number.value} $$")
    assert reply.returncode == -number
    assert reply.stdout == ((work / "f").read_bytes() if prefix == "cat f; " else b"")
    assert reply.stderr == b""


@pytest.mark.parametrize(
    ("prefix", "number"),
    [
        ("echo > g; ", signal.SIGTERM),
        ("head -1 f; ", signal.SIGHUP),
        ("head -1 f; ", signal.SIGINT),
        ("head -1 f; ", signal.SIGALRM),
        ("head -1 f; ", signal.SIGPIPE),
        ("echo > g; ", signal.SIGPIPE),
    ],
)
def test_a_signal_to_us_reaches_the_command(start: Start, work: Path, prefix: str, number: signal.Signals) -> None:
    trap = f"trap 'echo caught; exit 7' {number.name[3:]}"
    command = f"{prefix}{trap}; touch ready; while :; do sleep 0.02; done"
    with start("run", "-c", command, start_new_session=True) as process:
        wait_for(work / "ready")
        process.send_signal(number)
        out, err = process.communicate(timeout=WATCHDOG)
    assert process.returncode == 7
    assert (out.splitlines()[-1], err) == (b"caught", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGPIPE])
def test_what_was_printed_before_a_fatal_signal_to_us_is_shown(
    start: Start, work: Path, number: signal.Signals
) -> None:
    with start("run", "-c", "cat f; : >ready; while :; do :; done", start_new_session=True) as process:
        wait_for(work / "ready")
        process.send_signal(number)
        out, err = process.communicate(timeout=WATCHDOG)
    assert (process.returncode, out, err) == (-number, (work / "f").read_bytes(), b"")


@pytest.mark.parametrize("prefix", ["", "head -1 f; "])
def test_an_interrupt_of_the_whole_group_ends_command_and_us(start: Start, work: Path, prefix: str) -> None:
    # bash would go on after a signal that came while it waited for `touch`; a second one would end us while we print
    with start("run", "-c", f"{prefix}: >ready; sleep 60", start_new_session=True) as process:
        wait_for(work / "ready")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=WATCHDOG)
    assert process.returncode == -signal.SIGINT
    assert err == b""
    assert out == (b"line 1 of the file\n" if "head" in prefix else b"")


def test_an_interrupt_after_the_commands_end_costs_none_of_its_output(start: Start, run: Run, work: Path) -> None:
    run("run", "-c", "cat f")
    with closing(sqlite3.connect(work.parent / "state/readcache/readcache.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # judging waits for it
        with start("run", "-c", "trap 'touch ended' EXIT; head -1 f", start_new_session=True) as process:
            wait_for(work / "ended")
            time.sleep(1)
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=WATCHDOG)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"line 1 of the file\n", b"")


def test_a_signal_that_we_were_started_to_ignore_stays_ignored(work: Path, run_words: list[str]) -> None:
    ours = f"{shlex.join(run_words)} 'head -1 f; kill -HUP $PPID; kill -HUP $$; echo alive'"
    done = subprocess.run(["bash", "-c", f"trap '' HUP; {ours}"], capture_output=True, cwd=work)
    assert (done.returncode, done.stdout) == (0, b"line 1 of the file\nalive\n")


@pytest.mark.parametrize("suffix", ["", "; echo x > g"])
def test_lines_of_a_command_that_reads_nothing_come_before_it_ends(start: Start, suffix: str) -> None:
    with start("run", "-c", f'echo first; read x; echo "got $x"{suffix}') as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        process.stdin.write(b"that\n")
        process.stdin.close()
        assert process.stdout.read() == b"got that\n"
    assert process.returncode == 0


def test_a_reader_that_leaves_early_ends_us_as_it_ends_cat_and_nothing_counts_as_seen(
    run: Run, work: Path, run_words: list[str]
) -> None:
    (work / "big").write_bytes(b"0123456789abcde\n" * 20_000)
    ours = f"{shlex.join(run_words)} 'cat big' | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", ours], capture_output=True)
    assert done.stdout == b"0123456789abcde\n%d\n" % (128 + signal.SIGPIPE)
    assert done.stderr == b""
    assert run("run", "-c", "cat big").stdout == (work / "big").read_bytes()


def test_a_reader_that_leaves_early_does_not_stop_the_rest_of_a_long_command(work: Path, run_words: list[str]) -> None:
    (work / "big").write_bytes(b"0123456789abcde\n" * 600_000)
    ours = f"{shlex.join(run_words)} 'cat big big; touch after; exit 5' | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", ours], capture_output=True)
    assert done.stdout == b"0123456789abcde\n5\n"
    assert (work / "after").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_under_stdout_is_said_and_nothing_counts_as_seen(run: Run, work: Path) -> None:
    with open("/dev/full", "wb") as full:
        reply = run("run", "-c", "cat f", stdout=full)
    assert reply.returncode == 1
    assert reply.stderr.count(b"\n") == 1
    assert b"No space left" in reply.stderr
    assert run("run", "-c", "cat f").stdout == (work / "f").read_bytes()


def test_a_process_left_in_the_background_neither_holds_us_nor_loses_its_output(
    run: Run, start: Start, work: Path
) -> None:
    os.mkfifo(work / "gate")
    command = "cat f; { read x < gate; echo late $x; } & exit 6"
    with start("run", "-c", command, stdin=subprocess.DEVNULL) as process:
        assert process.wait(timeout=WATCHDOG) == 6
        (work / "gate").write_text("word\n")
        assert process.stdout is not None
        assert process.stdout.read() == (work / "f").read_bytes() + b"late word\n"
    assert run("run", "-c", "cat f").stdout == (work / "f").read_bytes()


def test_a_kill_at_any_moment_leaves_no_reply_that_counts_but_was_not_shown(run: Run, start: Start, work: Path) -> None:
    with start("run", "-c", "head -250 f; touch ready; sleep 60", start_new_session=True) as process:
        wait_for(work / "ready")
        os.killpg(process.pid, signal.SIGKILL)
        out = process.communicate(timeout=WATCHDOG)[0]
    assert out == b""
    assert run("run", "-c", "cat f").stdout == (work / "f").read_bytes()
