"""`Session.watch` and `Session.changes`: that a session tells its follower all that it must know."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from pathlib import Path

import pytest

from readcache import Mode, Outcome, Policy, Session
from tests.disk.edits import EDITED
from tests.helpers.files import TEXT


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "f").write_text(TEXT)
    return Session(tmp_path)


def names(session: Session) -> list[str]:
    return [Path(change.path).name for change in session.changes()]


def edit(session: Session, text: str = EDITED) -> None:
    """Somebody else does."""
    Path(session.root, "f").write_text(text)


@pytest.mark.parametrize("how", ["run", "read", "observe", "observe_read", "wrote"])
def test_a_file_that_was_seen_in_any_way_is_followed(session: Session, how: str) -> None:
    with session.watch():
        if how == "run":
            session.run("cat f")
        elif how == "read":
            session.read("f")
        elif how == "observe":
            session.observe("cat f", TEXT)
        elif how == "observe_read":
            session.observe_read("f", TEXT)
        else:
            session.wrote("f", content=TEXT)
        assert names(session) == []
        edit(session)
        assert names(session) == ["f"]


def test_files_seen_before_the_watch_are_followed(session: Session) -> None:
    session.read("f")
    with session.watch():
        assert names(session) == []
        edit(session)
        assert names(session) == ["f"]
        session.run("cat f")
        assert names(session) == []


def test_what_changed_between_the_read_and_the_watch_is_listed(session: Session) -> None:
    session.read("f")
    edit(session)
    with session.watch():
        assert names(session) == ["f"]


def test_the_agents_own_commands_and_writes_are_not_listed(session: Session) -> None:
    with session.watch():
        session.read("f")
        session.run("sed -i 1d f")
        session.run("sh -c 'echo more >> f'")
        assert names(session) == []
        edit(session)
        session.wrote("f")
        assert names(session) == []


def test_a_later_command_of_the_agent_leaves_the_change_listed(session: Session) -> None:
    with session.watch():
        session.read("f")
        edit(session)
        session.run("sh -c 'echo something else > g'")
        assert names(session) == ["f"]


def test_a_file_omitted_as_equal_to_another_is_followed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("f", "d/f"):
        (tmp_path / name).write_text(TEXT)
    session = Session(tmp_path, policy=Policy(delta=True))
    with session.watch():
        session.read("f")
        assert session.read("d/f", start=1, end=20).outcome is Outcome.UNCHANGED
        (tmp_path / "d" / "f").write_text(EDITED)
        assert [change.path for change in session.changes()] == [str(tmp_path / "d" / "f")]


def test_a_failed_read_of_another_tool_leaves_the_change_listed(session: Session) -> None:
    with session.watch():
        session.read("f")
        edit(session)
        session.observe_read("f", "error: it cannot be read\n", numbered=True)
        assert names(session) == ["f"]


def test_a_file_of_another_machine_is_not_followed(session: Session) -> None:
    with session.watch():
        session.observe("cat f", EDITED)
        session.observe_read("g", TEXT)
        assert names(session) == []


def test_a_sub_agents_writes_are_somebody_elses(session: Session) -> None:
    with session.watch():
        session.read("f")
        session.fork("another").run("sed -i 1d f")
        assert names(session) == ["f"]


def test_a_watch_within_a_watch_is_the_same_one(session: Session) -> None:
    with session.watch() as outer:
        with session.watch() as inner:
            assert outer is inner
        session.read("f")
        edit(session)
        assert names(session) == ["f"]


def test_a_watch_that_ended_can_begin_again(session: Session) -> None:
    for text in (EDITED, TEXT):
        with session.watch():
            session.read("f")
            edit(session, text)
            assert names(session) == ["f"]
            session.run("cat f")


def test_a_session_that_is_off_follows_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    session = Session(tmp_path, policy=Policy(mode=Mode.OFF))
    with session.watch():
        session.read("f")
        session.run("cat f")
        edit(session)
        assert names(session) == []


def test_no_thread_is_left_behind(session: Session) -> None:
    before = threading.active_count()
    with session.watch():
        session.read("f")
    assert threading.active_count() <= before


@pytest.mark.parametrize("is_async", [False, True])
def test_a_wrapped_tools_writes_are_the_agents_own_and_what_came_before_is_not(
    session: Session, is_async: bool
) -> None:
    def bash(command: str) -> str:
        done = subprocess.run(["bash", "-c", command], cwd=session.root, capture_output=True, text=True, check=True)
        return done.stdout

    async def bash_later(command: str) -> str:
        return bash(command)

    tool = session.wrap(bash_later if is_async else bash)

    def run(command: str) -> None:
        answer = tool(command)
        if is_async:
            asyncio.run(answer)

    with session.watch():
        run("cat f")
        edit(session)
        run("sh -c 'echo something else > g'")
        assert names(session) == ["f"]
        run("cat f")
        run("sh -c 'echo more >> f'")
        assert names(session) == []
