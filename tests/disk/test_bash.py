"""Running a command is what bash does with stdin closed, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from readcache import Reason, Session
from readcache.session.disk import bash
from readcache.session.disk.bash import run_bash
from tests.helpers.files import in_time_enough, wait_until

COMMANDS = (
    "echo a; echo b >&2; echo c",
    "printf 'no newline'",
    "exit 7",
    "false",
    "cat",  # stdin is closed
    "for i in 1 2 3; do echo $i; done | tac",
    "echo $0 $# $-",
    "(echo sub; exit 3)",
    "no-such-command",
    "printf 'a\\r\\nb\\0c'",
    "set -o pipefail; false | true",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_output_and_status_are_those_of_bash(tmp_path: Path, command: str) -> None:
    plain = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    for timeout in (None, 30.0):
        ran = run_bash(command, cwd=str(tmp_path), timeout=timeout)
        assert (ran.text, ran.exit_code) == (plain.stdout.decode("utf-8", "replace"), plain.returncode)


def test_the_environment_is_the_one_given(tmp_path: Path) -> None:
    ran = run_bash("echo $A-$HOME", cwd=str(tmp_path), env={"A": "1", "PATH": "/usr/bin:/bin"})
    assert ran.text == "1-\n"


def test_what_was_printed_before_a_timeout_is_kept(tmp_path: Path) -> None:
    ran = in_time_enough(
        lambda timeout: run_bash("echo early; sleep 60", cwd=str(tmp_path), timeout=timeout),
        lambda ran: bool(ran.text),
    )
    assert (ran.text, ran.exit_code, ran.skip_reason) == ("early\n", 124, Reason.TIMED_OUT)


def test_children_are_killed_with_the_command(tmp_path: Path) -> None:
    command = "(echo $BASHPID >pid; until [ -e over ]; do sleep 0.02; done; touch survived) & sleep 60"
    pid = tmp_path / "pid"
    pid.touch()
    in_time_enough(
        lambda timeout: run_bash(command, cwd=str(tmp_path), timeout=timeout), lambda _: pid.read_text() != ""
    )
    (tmp_path / "over").touch()
    wait_until(lambda: not Path(f"/proc/{pid.read_text().strip()}/cwd").exists(), "the end of the child")
    assert not (tmp_path / "survived").exists()


def test_a_command_that_closes_its_output_and_goes_on_still_times_out(tmp_path: Path) -> None:
    ran = in_time_enough(
        lambda timeout: run_bash("echo early; exec >&- 2>&-; sleep 60", cwd=str(tmp_path), timeout=timeout),
        lambda ran: bool(ran.text),
    )
    assert (ran.text, ran.skip_reason) == ("early\n", Reason.TIMED_OUT)


def test_output_that_never_ends_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bash, "MOST_BYTES", 100_000)
    ran = run_bash("yes", cwd=str(tmp_path), timeout=60)
    assert ran.skip_reason is Reason.TIMED_OUT
    assert ran.text.startswith("y\n" * 50_000)


def test_a_child_that_left_the_group_and_holds_the_output_does_not_hold_us(tmp_path: Path) -> None:
    command = "setsid bash -c 'until [ -e over ]; do sleep 0.02; done' & echo early; sleep 60"
    ran = in_time_enough(
        lambda timeout: run_bash(command, cwd=str(tmp_path), timeout=timeout), lambda ran: bool(ran.text)
    )
    (tmp_path / "over").touch()
    assert (ran.text, ran.skip_reason) == ("early\n", Reason.TIMED_OUT)


def test_side_effects_are_the_commands_own(tmp_path: Path) -> None:
    session = Session(tmp_path)
    (tmp_path / "f").write_text("some text that is long enough\n" * 40)
    session.run("cat f")
    session.run('cat f > copy; cat f | wc -l > count; x=$(cat f); echo "$x" > var')
    assert (tmp_path / "copy").read_text() == (tmp_path / "f").read_text()
    assert (tmp_path / "count").read_text().strip() == "40"
    assert (tmp_path / "var").read_text() == (tmp_path / "f").read_text()


def test_a_relative_cwd_is_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert Session(tmp_path).run("pwd -P", cwd="sub").text.strip() == str((tmp_path / "sub").resolve())


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize(("start", "end"), [(1, None), (3, 5), (9, 99), (40, 50), (1, 1)])
def test_a_read_prints_what_cat_and_sed_print(tmp_path: Path, numbered: bool, start: int, end: int | None) -> None:
    for text in ("one\ntwo\r\nthree\n\nfive\n" * 2, "a\nb\nc\nd\ne\nf without newline", "", "\n"):
        (tmp_path / "f").write_bytes(text.encode())
        cat = "cat -n f" if numbered else "cat f"
        plain = subprocess.run(
            ["bash", "-c", f"{cat} | sed -n '{start},{end or '$'}p'"], cwd=tmp_path, capture_output=True, check=True
        )
        reply = Session(tmp_path).read("f", start=start, end=end, numbered=numbered)
        assert reply.text == plain.stdout.decode()


@pytest.mark.parametrize(("start", "end"), [(0, 5), (-2, None), (5, 4)])
def test_a_read_of_no_range_is_refused_in_one_line(tmp_path: Path, start: int, end: int | None) -> None:
    (tmp_path / "f").write_text("a\n")
    reply = Session(tmp_path).read("f", start=start, end=end)
    assert (reply.exit_code, reply.reason, reply.text.count("\n")) == (1, Reason.UNREADABLE, 1)
