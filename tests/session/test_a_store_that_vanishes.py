"""While the store cannot be reached, what the host tells still holds: nothing that is gone is pointed at."""

from __future__ import annotations

import pytest

from readcache import Policy, Session
from readcache.log.store.protocol import MemoryStore
from tests.helpers.chats import message_list
from tests.helpers.files import text
from tests.laws.worlds.stores import FailingStore, Operations

CLEARED = "[cleared]"


@pytest.fixture
def operations() -> Operations:
    return Operations()


@pytest.fixture
def session(operations: Operations) -> Session:
    return Session("/w", session_id="s", store=FailingStore(MemoryStore(), operations), policy=Policy())


def read_twice(session: Session) -> list[tuple[str, str, str]]:
    """(call id, command, reply) of two equal reads; the second one is a marker."""
    turns = [(name, "cat f", session.observe("cat f", text(of="f"), call_id=name).text) for name in ("c1", "c2")]
    assert session.markers_in(turns[1][2])
    return turns


def without(turns: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [(*turns[0][:2], CLEARED), *turns[1:]]


def test_a_marker_that_no_list_has_held_gives_way_to_its_lines(session: Session, operations: Operations) -> None:
    turns = read_twice(session)
    operations.is_gone = True
    assert session.sync(message_list("openai", without(turns))) == {"c2": text(of="f")}


def test_a_compaction_does_not_bring_back_a_marker_that_a_list_took_away(
    session: Session, operations: Operations
) -> None:
    turns = read_twice(session)
    session.sync(message_list("openai", turns))
    operations.is_gone = True
    (gone,) = session.sync(message_list("openai", without(turns))).values()
    assert gone.startswith("[GONE")
    assert session.compacted(keep=["c2"]).rewrites == {}


@pytest.mark.parametrize("fails_at", range(8))
def test_what_the_host_told_holds_wherever_the_store_fails(
    session: Session, operations: Operations, fails_at: int
) -> None:
    turns = read_twice(session)
    session.sync(message_list("openai", turns))
    operations.is_gone = True
    session.compacted(keep=["c2"])
    operations.is_gone, operations.goes_in = False, fails_at
    session.sync(message_list("openai", turns[1:]))
    assert not session.view.is_visible("c1")
    operations.is_gone, operations.goes_in = False, None
    assert session.observe("cat f", text(of="f"), call_id="c3").text == text(of="f")


def test_each_failure_is_counted_once_now_and_after_the_store_is_back(session: Session, operations: Operations) -> None:
    operations.is_gone = True
    for name in ("c1", "c2"):
        session.observe("cat f", text(of="f"), call_id=name)
    assert session.stats()["store_failed"] == 2
    operations.is_gone = False
    session.observe("cat f", text(of="f"), call_id="c3")
    assert session.stats()["store_failed"] == 2


def test_an_id_that_is_used_again_no_longer_names_its_older_text(session: Session, operations: Operations) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    operations.is_gone = True
    session.observe("cat g", text(of="g"), call_id="c1")
    operations.is_gone = False
    assert session.observe("cat f", text(of="f"), call_id="c2").text == text(of="f")


def test_what_a_fork_could_not_store_does_not_count_as_shown_after_a_write(
    session: Session, operations: Operations
) -> None:
    session.observe("cat f", text(of="f"), call_id="c1")
    session.fork("early", inherit=False)
    operations.goes_in = 3
    child = session.fork("child", inherit=True)
    operations.is_gone, operations.goes_in = False, None
    session.wrote("f", call_id="w")
    assert child.observe("cat f", text(of="f"), call_id="c2").text == text(of="f")


def test_a_fork_made_meanwhile_mends_the_messages_that_it_starts_with(session: Session, operations: Operations) -> None:
    turns = read_twice(session)
    operations.is_gone = True
    child = session.fork("child", inherit=True)
    assert child.sync(message_list("openai", without(turns))).keys() == {"c2"}


def test_a_fork_made_meanwhile_knows_its_markers_when_the_store_is_back(
    session: Session, operations: Operations
) -> None:
    read_twice(session)
    operations.is_gone = True
    child = session.fork("child", inherit=True)
    operations.is_gone = False
    assert child.compacted(keep=["c2"]).rewrites.keys() == {"c2"}
