"""The session as harnesses use it: replies, forks, threads, tasks and processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from readcache import Mode, Omitted, Outcome, Policy, Reason, Session, Shown
from tests.helpers.files import TEXT, WATCHDOG, text
from tests.helpers.replies import sources
from tests.laws.oracle import marks_of

ROOT = Path(__file__).resolve().parents[2]


def test_a_reply_says_all_there_is_to_say() -> None:
    session = Session("/w")
    session.observe("head -n 20 f", text(1, 20), call_id="c1")
    reply = session.observe("cat f", TEXT, exit_code=3, call_id="c2")
    assert (reply.call_id, reply.exit_code, reply.outcome) == ("c2", 3, Outcome.PARTIAL)
    assert reply.segments[0] == Omitted("/w/f", 1, 20, ("c1",))
    assert isinstance(reply.segments[1], Shown)
    assert str(reply) == reply.text
    assert reply.full_text == TEXT
    assert [mark.omitted_lines for mark in marks_of(reply, TEXT, numbered=False)] == [TEXT.split("\n")[:20]]


def test_the_tokens_saved_are_net_of_the_marker() -> None:
    """A short file was credited with a long one's tokens."""
    session = Session("/w", policy=Policy(count_tokens=len))
    session.observe("cat f", TEXT)
    reply = session.observe("cat f", TEXT)
    assert reply.tokens_saved == len(TEXT) - len(reply.text)
    assert session.stats()["tokens_saved"] == reply.tokens_saved


def test_a_call_without_an_id_gets_one_of_its_own() -> None:
    session = Session("/w")
    first, second = session.observe("cat f", TEXT), session.observe("cat f", TEXT)
    assert first.call_id != second.call_id
    assert sources(second) == {first.call_id}


def test_markers_are_found_in_texts_of_this_session_alone() -> None:
    session, other = Session("/w", session_id="one"), Session("/w", session_id="two")
    session.observe("cat f", TEXT)
    marker = session.observe("cat f", TEXT).text.rstrip("\n")
    assert session.markers_in(f"a file\n{marker}\nwith a marker\n") == [marker]
    assert other.markers_in(marker) == []
    assert session.markers_in(TEXT) == []


def test_advising_omits_nothing_and_reports_what_it_would_have() -> None:
    """Where it only warned, the same savings were counted."""
    session = Session("/w", policy=Policy(mode=Mode.ADVISE))
    session.observe("cat f", TEXT)
    reply = session.observe("cat f", TEXT)
    assert (reply.text, reply.tokens_saved) == (TEXT, 0)
    assert session.stats()["tokens_saved_if_on"] > 0
    assert session.stats().get("tokens_saved", 0) == 0


def test_a_closed_session_can_be_closed_again(tmp_path: Path) -> None:
    session = Session("/w", store=tmp_path / "s.db")
    session.close()
    session.close()


def test_a_closed_session_still_lets_everything_through(tmp_path: Path) -> None:
    session = Session("/w", store=tmp_path / "s.db")
    session.observe("cat f", TEXT)
    session.close()
    assert session.observe("cat f", TEXT).text == TEXT


def test_a_session_goes_on_where_its_store_left_off(tmp_path: Path) -> None:
    with Session("/w", session_id="s", store=tmp_path / "s.db") as session:
        session.observe("cat f", TEXT, call_id="c1")
    with Session("/w", session_id="s", store=f"sqlite:///{tmp_path}/s.db") as session:
        assert sources(session.observe("cat f", TEXT)) == {"c1"}
    with Session("/w", session_id="another", store=tmp_path / "s.db") as session:
        assert session.observe("cat f", TEXT).text == TEXT


# ------------------------------------------------------------ sub-agents


def test_a_sub_agent_sees_nothing_of_its_parent() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT)
    assert session.fork("helper").observe("cat f", TEXT).reason is Reason.NOT_SEEN


def test_a_sub_agent_with_its_parents_messages_sees_what_they_show() -> None:
    """A fork that sees its parent's text was taken for fresh, or for one that sees all of it."""
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    child = session.fork("helper", inherit=True)
    assert sources(child.observe("cat f", TEXT, call_id="k1")) == {"c1"}
    assert not session.view.is_visible("k1")


def test_a_sub_agent_inherits_that_a_file_was_written_since() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.wrote("f")
    child = session.fork("helper", inherit=True)
    assert child.observe("cat f", TEXT).text == TEXT
    assert not session.view.covers("/w/f", 1, 40)


def test_a_sub_agent_inherits_that_a_file_was_seen_changed_and_what_was_read_after() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    new = TEXT.replace("number 7 ", "number seven ")
    session.observe("cat f", new, call_id="c2")
    child = session.fork("helper", inherit=True)
    assert sources(child.observe("cat f", new)) == {"c2"}
    child = session.fork("another", inherit=True)
    assert child.observe("cat f", TEXT).reason is Reason.CHANGED


def test_what_is_beyond_the_horizon_of_a_parent_is_beyond_that_of_its_copy() -> None:
    session = Session("/w", policy=Policy(horizon_tokens=700))
    for n, name in enumerate("fgh"):
        session.observe(f"cat {name}", TEXT.replace("line", f"line of {name}"), call_id=f"c{n}")
    session.compacted(keep=["c0"])
    copy = session.fork("copy", inherit=True)
    assert copy.observe("cat f", TEXT.replace("line", "line of f")).reason is Reason.NOT_SEEN


def test_inheriting_does_not_concern_the_parent() -> None:
    session = Session("/w")
    session.wrote("f")
    session.observe("cat f", TEXT, call_id="c1")
    session.fork("helper", inherit=True)
    assert sources(session.observe("cat f", TEXT)) == {"c1"}


# ------------------------------------------------------------ at once


def test_a_batch_within_a_batch_is_one_batch() -> None:
    session = Session("/w")
    with session.batch():
        session.observe("cat f", TEXT, call_id="c1")
        with session.batch():
            assert session.observe("cat f", TEXT).reason is Reason.SAME_BATCH
        assert session.observe("cat f", TEXT).reason is Reason.SAME_BATCH
    assert session.observe("cat f", TEXT).reason is Reason.COVERED


def test_threads_may_share_a_session() -> None:
    session = Session("/w")
    texts = {name: TEXT.replace("line", f"line of {name},") for name in "abcdefgh"}

    def work(number: int) -> None:
        for name, output in texts.items():
            reply = session.observe(f"cat {name}", output, call_id=f"{number}-{name}")
            assert reply.full_text == output
            for mark in marks_of(reply, output, numbered=False):
                assert all(source.endswith(f"-{name}") and source != reply.call_id for source in mark.sources)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert session.stats()["calls"] == 64
    assert session.stats().get("internal_error", 0) == 0
    assert sorted(record.seq for record in session.events()) == list(range(1, 65))


def test_tasks_may_share_a_session() -> None:
    session = Session("/w")

    async def bash(_command: str) -> str:
        await asyncio.sleep(0)
        return TEXT

    async def all_at_once() -> list[str]:
        wrapped = session.wrap(bash)
        return list(await asyncio.gather(*(wrapped("cat f") for _ in range(12))))

    texts = asyncio.run(all_at_once())
    assert texts.count(TEXT) + sum(len(session.markers_in(text)) for text in texts) == 12
    assert session.stats()["calls"] == 12


def test_a_compaction_in_another_thread_is_never_half_done() -> None:
    session = Session("/w")
    stop = threading.Event()

    def compact() -> None:
        while not stop.is_set():
            session.compacted()

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        for _ in range(60):
            session.observe("cat f", TEXT)
    finally:
        stop.set()
        thread.join()
    assert "internal_error" not in session.stats()


PROGRAM = """
    import sys
    from readcache import Session
    from readcache.log.store import sqlite_file
    from tests.helpers.files import TEXT
    sqlite_file.BUSY_SECONDS = 100  # on a machine that is busy with other things
    path, name = sys.argv[1:]
    with Session("/w", session_id="s", store=path) as session:
        for n in range(10):
            own = TEXT.replace("line", f"line of {name},")
            assert session.observe(f"cat {name}", own, call_id=f"{name}{n}").full_text == own
        assert "store_failed" not in session.stats(), session.stats()
"""


@pytest.mark.parametrize("count", [4])
def test_processes_may_share_a_session(tmp_path: Path, count: int) -> None:
    path = tmp_path / "s.db"
    running = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(PROGRAM), str(path), f"p{k}"], cwd=ROOT)
        for k in range(count)
    ]
    assert [process.wait(WATCHDOG) for process in running] == [0] * count
    with Session("/w", session_id="s", store=path) as session:
        assert session.stats()["calls"] == 10 * count
        text = TEXT.replace("line", "line of p2,")
        reply = session.observe("cat p2", text, call_id="now")
        assert sources(reply) <= {f"p2{n}" for n in range(10)}
        assert reply.outcome is not Outcome.PARTIAL


def test_what_another_process_was_told_holds_here_too(tmp_path: Path) -> None:
    here, there = (Session("/w", session_id="s", store=tmp_path / "s.db") for _ in range(2))
    here.observe("cat f", TEXT, call_id="c1")
    assert sources(there.observe("cat f", TEXT, call_id="c2")) == {"c1"}
    there.compacted(keep=["c2"])
    assert here.observe("cat f", TEXT).text == TEXT
