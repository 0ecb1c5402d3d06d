"""Texts removed from a store: gone from its bytes and from every view, while the logs stay readable."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from readcache import Budget, Outcome, Policy, Session
from readcache.cli.main import main
from readcache.context import Compactor
from readcache.core.model.events import Condensed, Delivered, Wrote
from readcache.log.scrub import scrub, scrub_all
from readcache.log.store import open_store
from readcache.log.store.sqlite import SqliteStore
from tests.helpers.chats import Messages, message_list
from tests.helpers.compactor import Model, commands
from tests.helpers.files import WATCHDOG, text
from tests.helpers.redis_server import Server
from tests.log.test_redis_store import stored_bytes

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "ghp_" + "a1B2c3D4e5" * 4
SECRET = text(of="a") + f"token {TOKEN}\n" + text(61, 120, of="a")
OLD = Policy(protected=())  # a version that knew no secrets


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture(params=["sqlite", "redis"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store with nothing in it."""
    if request.param == "sqlite":
        return str(tmp_path / "log" / "store.db")
    return f"{request.getfixturevalue('server').url}&prefix={tmp_path.name}"


@pytest.fixture
def stored(spec: str, request: pytest.FixtureRequest) -> Callable[[], str]:
    """Returns everything that the store has: the bytes of its files, or the events, which a server compresses."""

    def read() -> str:
        found = b""
        if "://" not in spec:
            found = b"".join(file.read_bytes() for file in Path(spec).parent.iterdir())
        else:
            found = stored_bytes(request.getfixturevalue("server"), spec)
        with closing(open_store(spec)) as store:
            return f"{found!r} {[list(store.records(name)) for name in dict.fromkeys(c[0] for c in store.sessions())]}"

    return read


def opened(spec: str, policy: Policy = Policy(), agent: str = "main") -> Session:  # noqa: B008  it is frozen
    return Session("/w", session_id="s", store=spec, policy=policy, agent_id=agent)


def fill(spec: str) -> None:
    """A session of an older version: c1 shows a secret, and c2 has a marker that names c1."""
    with opened(spec, OLD) as session:
        session.observe("cat a", SECRET, call_id="c1")
        assert session.observe("cat a", SECRET, call_id="c2").outcome is Outcome.UNCHANGED
        session.observe("cat b", text(of="b"), call_id="c3")
        session.observe(f"API_KEY={TOKEN[4:]} touch c", "", call_id="c4")


def test_doctor_removes_secrets_and_says_how_many(
    spec: str, stored: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(spec)
    assert TOKEN in stored()
    assert main(["doctor", "--scrub", "--store", spec]) == 0
    assert "from 2 calls of 1 session in " in capsys.readouterr().out
    assert TOKEN[4:] not in stored()
    assert main(["doctor", "--scrub", "--store", spec]) == 0
    assert "from 0 calls of 0 sessions in " in capsys.readouterr().out


def test_the_log_stays_readable(spec: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fill(spec)
    assert main(["doctor", "--scrub", "--store", spec]) == 0
    for words in (["log"], ["explain", "/w/a"], ["verify"], ["stats"], ["report", "-o", str(tmp_path / "page.html")]):
        assert main([*words, "--session", "s", "--store", spec]) == 0, words
    assert main(["gain", "--store", spec]) == 0
    out = capsys.readouterr().out
    assert "API_KEY=… touch c" in out
    assert "cat a" in out
    assert TOKEN[4:] not in out + (tmp_path / "page.html").read_text()
    with opened(spec) as session:
        assert not session.observe("cat b", text(of="b")).text.startswith("line")  # c3 is still a source
        assert [file.path for file in session.files()] == ["/w/b"]
        assert "token" not in session.restore_plan(keep=[]).render()


def test_another_process_with_the_view_in_memory_shows_the_lines_again(spec: str, stored: Callable[[], str]) -> None:
    fill(spec)
    with opened(spec) as live:
        assert live.reader.view.covers("/w/a", 1, 60)
        assert main(["doctor", "--scrub", "--store", spec]) == 0
        assert not live.reader.view.covers("/w/a", 1, 1)
        reply = live.observe("head -n 30 a", text(1, 30, of="a"), call_id="c5")
        assert (reply.outcome, reply.text) == (Outcome.FULL, text(1, 30, of="a"))
    assert TOKEN[4:] not in stored()


def test_one_call_is_forgotten_and_another_that_shows_the_same_stays(
    spec: str, stored: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(spec) as session:
        session.observe("cat only", text(of="only"), call_id="c1")
        session.observe("cat a", text(of="a"), call_id="c2")
        session.observe("cat > new <<E\nwritten by the agent\nE", "", call_id="c4")
    with opened(spec, agent="other") as session:
        session.observe("cat a", text(of="a"), call_id="c3")
    for call in ("c1", "c2", "c4"):
        assert main(["forget", call, "--session", "s", "--store", spec]) == 0
    assert main(["forget", "c1", "--session", "s", "--store", spec]) == 1
    assert main(["forget", "c9", "--session", "s", "--store", spec]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("removed the text of call c") == 3
    assert "session s has no text of call c9" in captured.err
    assert "of only" not in stored()
    assert "written by the agent" not in stored()
    with opened(spec, agent="other") as session:
        assert [file.path for file in session.files()] == ["/w/a"]
        events = [record.event for record in session.events()]
    assert [event.call_id for event in events if isinstance(event, Wrote)] == ["c4"]  # the file counts as written
    assert [event.call_id for event in events if isinstance(event, Delivered) and event.text] == ["c3"]


def test_markers_that_named_a_forgotten_call_are_retired_in_the_message_list(spec: str) -> None:
    with opened(spec) as session:
        session.observe("cat a", text(of="a"), call_id="c1")
        marked = session.observe("cat a b", text(of="a") + text(of="b"), call_id="c2").text
        turns = [("c1", "cat a", text(of="a")), ("c2", "cat a b", marked)]
        messages = message_list("openai", turns)
        assert session.sync(messages) == {}
        assert main(["forget", "c1", "--session", "s", "--store", spec]) == 0
        assert session.sync(messages)["c2"].startswith("[GONE ")


def test_the_marker_of_a_forgotten_call_is_retired_when_its_source_leaves(spec: str) -> None:
    with opened(spec) as session:
        session.observe("cat a", text(of="a"), call_id="c1")
        marked = session.observe("cat a b", text(of="a") + text(of="b"), call_id="c2").text
        assert main(["forget", "c2", "--session", "s", "--store", spec]) == 0
        rewrites = session.compacted(keep=["c2"]).rewrites
        assert rewrites["c2"].startswith("[GONE ")
        assert marked.startswith("[")


def test_it_is_retired_in_a_message_list_too(spec: str) -> None:
    with opened(spec) as session:
        session.observe("cat a", text(of="a"), call_id="c1")
        marked = session.observe("cat a b", text(of="a") + text(of="b"), call_id="c2").text
        turns = [("c1", "cat a", text(of="a")), ("c2", "cat a b", marked)]
        assert session.sync(message_list("openai", turns)) == {}
        assert main(["forget", "c2", "--session", "s", "--store", spec]) == 0
        new = session.sync(message_list("openai", turns[1:]))
        assert new["c2"].startswith("[GONE ")
        assert new["c2"].endswith(text(of="b"))
        assert not any("line 5 of b" in getattr(record.event, "text", "") for record in session.events())


def test_the_copy_that_a_sub_agent_has_goes_too(spec: str, stored: Callable[[], str]) -> None:
    fill(spec)
    with opened(spec, OLD) as session, session.fork("child", inherit=True) as child:
        assert child.reader.view.covers("/w/a", 1, 60)
        assert main(["doctor", "--scrub", "--store", spec]) == 0
        assert not child.reader.view.covers("/w/a", 1, 1)
        assert child.reader.view.covers("/w/b", 1, 60)
    assert TOKEN[4:] not in stored()


def test_a_reply_that_is_not_shown_yet_is_no_source_when_it_is_committed(spec: str) -> None:
    with opened(spec, OLD) as session:
        session.observe("cat a", SECRET, call_id="c1")
        session.observe("cat a b", SECRET + text(of="b"), call_id="c2", commit=False)
        assert main(["doctor", "--scrub", "--store", spec]) == 0
        session.commit("c2")
        assert not session.reader.view.covers("/w/b", 1, 1)
        assert session.observe("head -n 40 a", text(1, 40, of="a")).outcome is Outcome.FULL


# ------------------------------------------------------------ summaries of compactions


def compacted(spec: str, said: str) -> tuple[Messages, str]:
    """Compact a conversation of an older version to a summary that says this. Return the whole list, and the
    condensation's ID."""
    with opened(spec, OLD) as session:
        files = [(f"head -n 60 {name}", text(of=name)) for name in ("a", "notes/n", *"bcdef")]
        whole = commands("openai", session, *files)
        model = Model(f"TASK: {said.replace(TOKEN, 'PLACE')}\nNEXT STEP: none")
        compactor = Compactor(session, model, trigger_tokens=100_000, budget=Budget(max_tokens=0))
        compactor.compact(whole)
        (made,) = compactor.condensations
    with closing(open_store(spec)) as store, store.transaction():
        for record in list(store.records("s")):
            if isinstance(record.event, Condensed):
                store.rewrite("s", [(record, replace(record.event, data=record.event.data.replace("PLACE", TOKEN)))])
    return whole, made.id


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (f"use {TOKEN}", ["doctor", "--scrub"]),
        ("so notes/n number 7 says something that no other line says", ["doctor", "--scrub"]),
        ("so a number 7 says something that no other line says", ["forget", "c1", "--session", "s"]),
        ("its first command was head -n 60 a", ["forget", "c1", "--session", "s"]),
    ],
    ids=["a certain secret", "a line of a protected file", "a line of a forgotten call", "its command"],
)
def test_a_summary_that_quotes_it_is_removed_and_resume_names_it(
    said: str, words: list[str], spec: str, stored: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, made = compacted(spec, said)
    monkeypatch.setenv("READCACHE_PROTECTED", "notes/*")
    assert said in stored()
    assert main([*words, "--store", spec]) == 0
    assert said not in stored()
    assert main(["log", "--session", "s", "--store", spec]) == 0
    with opened(spec) as session:
        compactor = Compactor(session, None, trigger_tokens=100_000)
        assert compactor.resume(whole) is whole
        assert compactor.report.trouble.endswith(f"condensation {made}")


def test_a_summary_that_quotes_nothing_of_it_stays(spec: str, stored: Callable[[], str]) -> None:
    whole, _ = compacted(spec, "so b number 7 says something that no other line says")
    assert main(["doctor", "--scrub", "--store", spec]) == 0
    assert main(["forget", "c1", "--session", "s", "--store", spec]) == 0
    assert "so b number 7 says" in stored()
    with opened(spec) as session:
        compactor = Compactor(session, None, trigger_tokens=100_000)
        assert "so b number 7 says" in str(compactor.resume(whole))


KILLED = """
    import os, sqlite3, sys
    given = 0

    class Killing(sqlite3.Connection):
        def execute(self, *words):
            global given
            given += 1
            if given == int(sys.argv[2]):
                os.kill(os.getpid(), 9)
            return super().execute(*words)

    connect = sqlite3.connect
    sqlite3.connect = lambda *words, **names: connect(*words, factory=Killing, **names)
    from readcache import Policy
    from readcache.log.scrub import scrub_all
    from readcache.log.store.sqlite import SqliteStore
    store = SqliteStore(sys.argv[1])
    print(scrub_all(store, Policy()))
    store.close()
    print(given)
"""


def scrub_until(path: Path, last: int) -> list[str]:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(path), str(last)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=WATCHDOG, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def kill_at(path: Path, last: int) -> bool:
    """Return True if the secret was gone after a kill at this statement. Check that nothing else is lost."""
    fill(str(path))
    scrub_until(path, last)
    with closing(SqliteStore(path)) as store:
        shown = [record.event for record in store.records("s") if isinstance(record.event, Delivered)]
        records = {event.call_id: event for event in shown}
        assert list(records) == ["c1", "c2", "c3", "c4"]
        assert records["c3"].text == text(of="b")
        is_gone = TOKEN not in repr(records)
        assert is_gone == (scrub_all(store, Policy()) == [])
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert TOKEN[4:].encode() not in b"".join(file.read_bytes() for file in files)
    return is_gone


def test_a_kill_amid_it_loses_nothing_and_the_next_one_finishes(tmp_path: Path) -> None:
    fill(str(tmp_path / "whole.db"))
    count, statements = scrub_until(tmp_path / "whole.db", 0)
    assert count == "[2]"
    found = [kill_at(tmp_path / f"{last}.db", last) for last in range(1, int(statements) + 1, 7)]
    assert {True, False} >= set(found)
    assert False in found


@pytest.mark.slow
def test_that_holds_at_each_statement(tmp_path: Path) -> None:
    fill(str(tmp_path / "whole.db"))
    _, statements = scrub_until(tmp_path / "whole.db", 0)
    found = [kill_at(tmp_path / f"{last}.db", last) for last in range(1, int(statements) + 1)]
    assert set(found) == {True, False}
    assert found == sorted(found)


def test_a_session_that_was_scrubbed_expires_when_it_would_have(spec: str) -> None:
    fill(spec)
    with closing(open_store(spec)) as store:
        before = [context[3] for context in store.sessions()]
        assert scrub(store, "s", Policy()) == 2
        assert [context[3] for context in store.sessions()] == before
