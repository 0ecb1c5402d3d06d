"""A session that goes on in another process: what may never have reached the conversation is shown again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from readcache import Reason, Session
from readcache.core.model.events import Delivered
from readcache.log.store import open_store
from readcache.log.store.protocol import MemoryStore
from tests.helpers.files import TEXT, text
from tests.helpers.replies import sources
from tests.laws.worlds.stores import FailingStore, Operations

DIES = """
import os
from readcache import Session
{body}
os.kill(os.getpid(), 9)
"""


def a_process_that_dies(store: Path, body: str) -> None:
    body = f"s = Session('/w', session_id='s', store={str(store)!r})\nTEXT = {TEXT!r}\n{body}"
    done = subprocess.run([sys.executable, "-c", DIES.format(body=body)], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr


def go_on(store: Path) -> Session:
    return Session("/w", session_id="s", store=store)


def test_the_last_result_of_a_killed_process_is_shown_again(tmp_path: Path) -> None:
    a_process_that_dies(tmp_path / "s.db", "s.observe('cat f', TEXT)")
    with go_on(tmp_path / "s.db") as session:
        assert session.observe("cat f", TEXT).text == TEXT
        assert sources(session.observe("head -n 30 f", text(1, 30)))


def test_a_whole_output_that_a_host_shows_counts_as_shown_though_its_hook_was_killed(tmp_path: Path) -> None:
    """Hooks of parallel calls run at the same time: one that had not ended yet was taken for killed."""
    call = "ToolCall('c1', 'Bash', {}, TEXT, asked=AskedCommand('cat f'), cwd='/w')"
    body = "from readcache import Policy, Sessions\nfrom readcache.core.model.tool_call import AskedCommand, ToolCall\n"
    body += (
        f"event = Sessions(store={str(tmp_path / 's.db')!r}).at(None, '/w', Policy(), 'claude-code', is_only=True)\n"
    )
    a_process_that_dies(tmp_path / "s.db", f"{body}event.get('s').answer({call}, commit=False)")
    with go_on(tmp_path / "s.db") as session:
        assert sources(session.observe("cat f", TEXT)) == {"c1"}


def test_what_came_before_it_counts_as_shown(tmp_path: Path) -> None:
    a_process_that_dies(tmp_path / "s.db", "s.observe('cat f', TEXT, call_id='c1'); s.observe('ls', 'f')")
    with go_on(tmp_path / "s.db") as session:
        assert sources(session.observe("cat f", TEXT)) == {"c1"}


@pytest.mark.parametrize(
    "calls",
    [
        "with s.batch():\n  s.observe('cat f', TEXT)\n  s.observe('ls', 'f')",
        "s.observe('cat f', TEXT, batch='b'); s.observe('ls', 'f', batch='b')",
        "s.run('true')\nimport threading\n"
        "def late(command):\n  if command == 'ls': first.join()\n  return TEXT if command == 'cat f' else 'x'\n"
        "tool = s.wrap(late)\n"
        "first = threading.Thread(target=tool, args=('cat f',))\n"
        "second = threading.Thread(target=tool, args=('ls',))\n"
        "second.start(); first.start(); second.join()",
    ],
)
def test_of_calls_that_were_under_way_together_none_counts_as_shown(tmp_path: Path, calls: str) -> None:
    a_process_that_dies(tmp_path / "s.db", calls)
    with go_on(tmp_path / "s.db") as session:
        assert session.observe("cat f", TEXT).text == TEXT


def test_a_session_that_was_closed_goes_on_where_it_was(tmp_path: Path) -> None:
    for reason in (Reason.NOT_SEEN, Reason.COVERED, Reason.INSISTED):
        with go_on(tmp_path / "s.db") as session:
            assert session.observe("cat f", TEXT).reason is reason


def test_a_session_that_an_error_ended_was_not_closed_in_order(tmp_path: Path) -> None:
    def harness() -> None:
        with go_on(tmp_path / "s.db") as session:
            session.observe("cat f", TEXT)
            raise RuntimeError("the harness failed before it kept the result")

    with pytest.raises(RuntimeError):
        harness()
    with go_on(tmp_path / "s.db") as session:
        assert session.observe("cat f", TEXT).text == TEXT


def test_the_message_list_says_what_was_delivered(tmp_path: Path) -> None:
    a_process_that_dies(tmp_path / "s.db", "s.observe('cat f', TEXT, call_id='c1')")
    with go_on(tmp_path / "s.db") as session:
        session.sync([{"role": "user", "content": "task"}, {"role": "tool", "tool_call_id": "c1", "content": TEXT}])
        assert sources(session.observe("cat f", TEXT)) == {"c1"}


def test_another_session_of_this_process_that_goes_on_is_no_crash(tmp_path: Path) -> None:
    here, there = go_on(tmp_path / "s.db"), go_on(tmp_path / "s.db")
    here.observe("cat f", TEXT, call_id="c1")
    assert sources(there.observe("cat f", TEXT)) == {"c1"}


def test_a_write_that_is_told_first_forgets_no_more_than_the_crash_does(tmp_path: Path) -> None:
    a_process_that_dies(tmp_path / "s.db", "s.observe('cat f', TEXT, call_id='c1'); s.observe('ls', 'f')")
    with go_on(tmp_path / "s.db") as session:
        session.wrote("g", content=text(of="other"), call_id="c3")
        assert sources(session.observe("cat g", text(of="other"))) == {"c3"}
        assert sources(session.observe("cat f", TEXT)) == {"c1"}


GIVES_A_MARKER = (
    "HEAD = ''.join(TEXT.splitlines(True)[:30])\n"
    "s.observe('cat f', TEXT, call_id='c1')\nassert 'UNCHANGED' in s.observe('head -n 30 f', HEAD, call_id='c2').text"
)


@pytest.mark.parametrize("kept", [["c2"], ["c1", "c2"], ["c2", "c3"]])
def test_a_call_of_a_killed_process_that_the_host_keeps_was_shown(tmp_path: Path, kept: list[str]) -> None:
    """Nothing follows its marker, so that it goes at once."""
    a_process_that_dies(tmp_path / "s.db", GIVES_A_MARKER)
    with go_on(tmp_path / "s.db") as session:
        session.observe("ls", "f", call_id="c3")
        rewrites = session.compacted(keep=kept).rewrites
        assert rewrites.keys() == {"c2"}
        assert rewrites["c2"].startswith("[GONE")
        assert session.compacted(keep=["c3"]).rewrites == {}


def test_a_call_of_a_killed_process_that_stands_in_a_list_was_shown(tmp_path: Path) -> None:
    a_process_that_dies(tmp_path / "s.db", GIVES_A_MARKER)
    with go_on(tmp_path / "s.db") as session:
        marker = next(
            one.event.text for one in session.events() if isinstance(one.event, Delivered) and one.event.call_id == "c2"
        )
        session.observe("ls", "f", call_id="c3")
        results = [
            {"role": "tool", "tool_call_id": call, "content": shown} for call, shown in [("c2", marker), ("c3", "f")]
        ]
        assert "UNCHANGED" not in str(session.mend(results))


def test_a_compaction_is_told_while_the_log_cannot_be_read() -> None:
    store = FailingStore(MemoryStore(), operations := Operations())
    session = Session("/w", session_id="s", store=store)
    session.observe("cat f", TEXT, call_id="c1")
    operations.is_gone = True
    assert session.compacted(keep=["c0"]).rewrites == {}
    operations.is_gone = False
    assert session.observe("cat f", TEXT).text == TEXT


@pytest.mark.parametrize("asks", [True, False], ids=["after a call", "at once"])
def test_a_fork_of_a_session_that_goes_on_knows_what_is_in_doubt(tmp_path: Path, asks: bool) -> None:
    a_process_that_dies(tmp_path / "s.db", "s.observe('ls', 'f', call_id='c0'); s.observe('cat f', TEXT, call_id='c1')")
    with go_on(tmp_path / "s.db") as session:
        if asks:
            session.observe("ls", "f", call_id="c2")
        child = session.fork("child", inherit=True)
        assert child.observe("cat f", TEXT).text == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("kept", [["c2"], ["c1", "c2"], ["c2", "c3"]])
def test_a_fork_replaces_the_marker_of_a_call_that_was_in_doubt(tmp_path: Path, kept: list[str]) -> None:
    a_process_that_dies(tmp_path / "s.db", GIVES_A_MARKER)
    with go_on(tmp_path / "s.db") as session:
        session.observe("ls", "f", call_id="c3")
        child = session.fork("child", inherit=True)
        grandchild = child.fork("grandchild", inherit=True)
        for one in (child, grandchild):
            rewrites = one.compacted(keep=kept).rewrites
            assert rewrites.keys() == {"c2"}
            assert rewrites["c2"].startswith("[GONE")
            assert one.compacted(keep=["c3"]).rewrites == {}
            assert one.observe("cat f", TEXT).text == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("operations", range(12))
def test_a_store_that_fails_meanwhile_settles_no_doubt(tmp_path: Path, operations: int) -> None:
    """What is in doubt stays so until the store has taken that it is."""
    a_process_that_dies(tmp_path / "s.db", "s.observe('ls', 'f', call_id='c0'); s.observe('cat f', TEXT, call_id='c1')")
    counted = Operations()
    counted.goes_in = operations
    store = FailingStore(open_store(str(tmp_path / "s.db")), counted, str(tmp_path / "s.db"))
    with Session("/w", session_id="s", store=store) as session:
        session.observe("ls -a", ". f", call_id="c2")
        counted.goes_in, counted.is_gone = None, False
        assert session.observe("cat f", TEXT, call_id="c3").text == TEXT
