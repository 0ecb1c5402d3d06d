"""Commands that are awaited."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from readcache import Outcome, Reason, Session
from readcache.session.threads import in_thread
from tests.helpers.files import TEXT


def test_an_awaited_command_is_answered_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    session = Session(tmp_path)
    assert asyncio.run(session.arun("cat f")).text == TEXT
    assert asyncio.run(session.arun("cat f", call_id="c2")).outcome is Outcome.UNCHANGED
    assert asyncio.run(session.arun("exit 3")).exit_code == 3
    assert asyncio.run(session.arun("sleep 9", timeout=0.1)).reason is Reason.TIMED_OUT


def test_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def both() -> list[str]:
        waiting = asyncio.ensure_future(session.arun("while [ ! -e go ]; do sleep 0.01; done; echo went"))
        other = await session.arun("touch go; echo touched")
        return [(await waiting).text, other.text]

    assert asyncio.run(both()) == ["went\n", "touched\n"]


@pytest.mark.parametrize("command", ["echo $$ > pid; cat f; sleep 60", "echo $$ > pid; exec >&- 2>&-; sleep 60"])
def test_a_cancelled_command_is_killed_and_nothing_of_it_counts_as_shown(tmp_path: Path, command: str) -> None:
    (tmp_path / "f").write_text(TEXT)
    session = Session(tmp_path)

    async def cancel() -> None:
        task = asyncio.ensure_future(session.arun(command))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(cancel())
    assert time.monotonic() - began < 50
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/cwd").exists()
    assert session.run("cat f").text == TEXT


def test_long_output_without_a_timeout_is_not_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readcache.session.disk.bash.MOST_BYTES", 10_000)
    reply = asyncio.run(Session(tmp_path).arun("head -c 500000 /dev/zero | tr '\\0' x"))
    assert len(reply.text) == 500_000


def test_a_reply_that_a_cancelled_task_never_took_does_not_count_as_shown(tmp_path: Path) -> None:
    """The command ends while the loop is busy, and the task is cancelled before the loop looks."""
    (tmp_path / "f").write_text(TEXT)
    session = Session(tmp_path)

    async def cancel_late() -> Outcome:
        task = asyncio.ensure_future(session.arun("cat f; touch ended", call_id="c1"))
        while not (tmp_path / "ended").exists():
            await asyncio.sleep(0)
        while not session.view.of_call("c1"):  # the loop is busy
            time.sleep(0.01)
        time.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return session.run("cat f").outcome

    assert asyncio.run(cancel_late()) is Outcome.FULL


def test_a_call_that_looks_late_still_finds_that_it_is_to_stop() -> None:
    """anyio cancels every await of a cancelled scope, also the one for the thread that was told to stop."""
    told = list[bool]()

    def call(stop: threading.Event) -> None:
        time.sleep(0.2)
        told.append(stop.wait(1))

    async def cancel_twice() -> None:
        task = asyncio.ensure_future(in_thread(call))
        for _ in range(2):
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not told:
            await asyncio.sleep(0.01)

    asyncio.run(cancel_twice())
    assert told == [True]
