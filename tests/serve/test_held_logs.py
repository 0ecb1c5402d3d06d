"""The logs that a server holds are a memory of the store, and no more than that."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from readcache import Reply, Session
from readcache.cli import held_logs
from readcache.cli.held import held_call
from readcache.cli.held_logs import HeldLogs
from readcache.judging import marker
from readcache.policy import Policy, Rules
from readcache.reply import Outcome, Reason
from readcache.shell.read import read_command
from tests.helpers.files import TEXT


def answer(logs: HeldLogs, command: str, output: str = TEXT, session: str = "s", policy: Policy = Policy()) -> Reply:  # noqa: B008  frozen
    """What a call is answered that the server is asked for, and that was printed."""
    call = held_call(command, "/w", output, read_command(command, "/w", 0), 0)
    with logs.use(session, "main") as held:
        return held.reader(Rules(policy, marker.tag(session))).answer(call, lambda _: None, began=time.time())


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_the_first_call_of_a_session_knows_what_matters_to_it_and_the_next_one_all(path: str) -> None:
    with Session("/w", session_id="s", store=path) as session:
        session.observe("cat f", TEXT)
        session.observe("cat g", TEXT.upper())
    logs = HeldLogs(path)
    assert answer(logs, "cat f").reason is Reason.COVERED
    half = "".join(TEXT.upper().splitlines(keepends=True)[:40])
    assert answer(logs, "git show HEAD:g | head -40", half).outcome is Outcome.UNCHANGED, "found by its text alone"
    logs.close()


@pytest.mark.parametrize("policy", [Policy(), Policy.named("max")], ids=["default", "max"])
def test_a_long_session_is_folded_while_nobody_waits(path: str, policy: Policy) -> None:
    with Session("/w", session_id="s", store=path) as session:
        for number in range(400):
            session.observe(f"cat f{number}", TEXT.replace("line", f"part {number}"))
    logs = HeldLogs(path)
    call = held_call("cat f7", "/w", TEXT.replace("line", "part 7"), read_command("cat f7", "/w", 0), 0)
    with logs.use("s", "main") as held:
        began = time.thread_time()
        reply = held.reader(Rules(policy, marker.tag("s"))).answer(call, lambda _: None, began=time.time())
        answered = time.thread_time() - began
        began = time.thread_time()
    folded = time.thread_time() - began
    assert reply.outcome is Outcome.UNCHANGED
    assert answered < folded / 3
    logs.close()


def test_what_others_log_is_seen_at_once(path: str) -> None:
    logs = HeldLogs(path)
    answer(logs, "cat f")
    with Session("/w", session_id="s", store=path) as session:
        session.observe("cat g", TEXT.upper())
        session.compacted(keep=())
    assert answer(logs, "cat f").reason is not Reason.COVERED
    assert answer(logs, "cat f").reason is Reason.COVERED
    logs.close()


def test_no_more_are_held_than_there_is_room_for(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_logs, "MOST_LOGS", 3)
    logs = HeldLogs(path)
    for number in range(9):
        answer(logs, "cat f", session=f"s{number}")
    assert len(logs) == 3
    assert answer(logs, "cat f", session="s0").reason is Reason.COVERED, "it was folded again"
    opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    assert opened.count(path) <= 2, "all of them share one connection; another one folds"
    logs.close()


def test_a_store_that_was_taken_away_is_forgotten(path: str) -> None:
    logs = HeldLogs(path)
    answer(logs, "cat f")
    for name in (path, f"{path}-wal", f"{path}-shm"):
        os.unlink(name)
    assert answer(logs, "cat f").outcome is Outcome.FULL
    assert answer(logs, "cat g", TEXT.upper()).outcome is Outcome.FULL
    assert answer(logs, "cat g", TEXT.upper()).reason is Reason.COVERED
    logs.close()
