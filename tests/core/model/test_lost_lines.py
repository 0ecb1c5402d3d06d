"""What came of a compaction: calls that read again what it took, and those that its restored section answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from readcache import Session
from readcache.core.model.events import Amended, Compacted, Event, Forgot
from readcache.core.model.rereads import WATCHED
from readcache.core.model.view import View
from tests.helpers.files import text

F, G = text(), text(of="g")


@pytest.fixture
def session() -> Session:
    """It was shown two files."""
    session = Session("/w", local=False)
    session.observe("cat f", F)
    session.observe("cat g", G)
    return session


def rereads(session: Session) -> tuple[int, int]:
    counts = session.stats()
    return counts.get("reread_calls", 0), counts.get("reread_answered", 0)


def test_a_read_of_what_a_compaction_took_counts_once_for_each_call(session: Session) -> None:
    session.compacted()
    session.observe("cat f", F)
    session.observe("sed -n '40,60p' g", "".join(G.splitlines(True)[39:60]))
    session.observe("cat other", text(of="other"))
    assert rereads(session) == (2, 0)


def test_one_that_the_restored_section_answers_is_told_apart(session: Session) -> None:
    plan = session.restore_plan()
    session.compacted(restored=plan)
    assert "UNCHANGED" in session.observe("cat f", F).text
    assert rereads(session) == (1, 1)
    session.observe("cat f", F)  # insists
    assert rereads(session) == (2, 1)


def test_a_read_that_has_mostly_other_lines_is_none(session: Session) -> None:
    session.compacted()
    longer = text(1, 200)
    session.observe("cat f", longer)
    assert rereads(session) == (0, 0)


def test_nor_is_one_that_comes_much_later_or_of_what_stayed(session: Session) -> None:
    kept = session.view.deliveries[0].event.call_id
    session.compacted(keep=[kept])
    session.observe("cat f", F)
    assert rereads(session) == (0, 0)
    for number in range(WATCHED):
        session.observe(f"echo {number}", f"{number}\n")
    session.observe("cat g", G)
    assert rereads(session) == (0, 0)


def test_what_a_message_list_no_longer_holds_is_lost_as_well(session: Session) -> None:
    session.sync([])
    session.observe("cat g", G)
    assert rereads(session) == (1, 0)


def test_what_left_is_counted_whoever_took_it(session: Session) -> None:
    kept = session.view.deliveries[0].event.call_id
    session.settle(kept, F[: len(F) // 2])
    assert session.stats()["removed_chars"] == len(F) - len(F) // 2
    session.compacted()
    assert session.stats()["removed_chars"] == len(F) + len(G)


def avoided(session: Session) -> int:
    return session.stats().get("turns_avoided", 0)


def put_back(session: Session) -> None:
    session.compacted(restored=session.restore_plan())


def test_a_write_of_what_was_put_back_spared_a_read_once(session: Session) -> None:
    session.wrote("f")
    assert avoided(session) == 0, "nothing was put back"
    put_back(session)
    session.wrote("g")
    session.wrote("g")
    assert avoided(session) == 1


@pytest.mark.parametrize("command", ["cat g", "sed -n 1,40p g"])
def test_it_spared_none_where_the_file_was_read_again(session: Session, command: str) -> None:
    put_back(session)
    session.observe(command, G if command == "cat g" else "".join(G.splitlines(True)[:40]))
    session.wrote("g")
    assert avoided(session) == 0


def test_nor_where_the_section_left_or_somebody_else_wrote(session: Session) -> None:
    other = session.fork("other")
    put_back(session)
    other.wrote("g")
    session.wrote("g")
    put_back(session)
    session.compacted()
    session.wrote("f")
    assert avoided(session) == avoided(other) == 0


def broken_caches(*events: Event) -> int:
    """Of a conversation in which a marker was mended, with this in between."""
    session = Session("/w", local=False)
    session.observe("cat f", F, call_id="c1")
    session.observe("cat f", F, call_id="c2")
    session.observe("ls", "f\n", call_id="c3")
    view = View()
    for record in session.events():
        view.apply(record.event)
    (marked,) = view.of_call("c2")
    gone = tuple(replace(marker, wording="[GONE]") for marker in marked.event.markers)
    for event in (*events, Amended("c2", "[GONE]\n", markers=gone, lost=False)):
        view.apply(event)
    return view.calls.counts["cache_writes"]


def test_a_marker_that_is_mended_breaks_a_prompt_cache_unless_something_left_since_the_last_request() -> None:
    assert broken_caches() == 1
    assert broken_caches(Forgot(frozenset({"c1"}))) == 0
    assert broken_caches(Compacted(frozenset({"c2"}))) == 0
    assert broken_caches(Amended("c1", "")) == 0
