"""A cursor in the log: every query, answered as of then."""

from __future__ import annotations

import pytest
from hypothesis import given

from readcache import Session
from readcache.core.model.cursor import Cursor, NoSuchCall
from readcache.core.model.events import Event, Record
from readcache.core.model.view import View
from tests.helpers.strategies import KEYS, histories

TEXT = "".join(f"line {n} of a file with some words in it\n" for n in range(1, 101))
FILE = "/w/f"


def part(first: int, last: int) -> str:
    return "".join(TEXT.splitlines(True)[first - 1 : last])


def told() -> Session:
    session = Session("/w", session_id="s")
    session.observe("head -n 50 f", part(1, 50), call_id="c1")
    session.observe("sed -n '51,100p' f", part(51, 100), call_id="c2")
    session.observe("sed -i s/a/b/ f", "", call_id="c3")
    session.observe("cat f", TEXT, call_id="c4")
    return session


def records_of(log: list[Event]) -> list[Record]:
    return [Record(seq, "main", 0.0, event) for seq, event in enumerate(log, 1)]


def seen(view: View) -> tuple[object, ...]:
    """All that can be asked of a view."""
    spans = [[(a, b, r.event.call_id, r.mapped) for a, b, r in view.key(key).numbered.overlaps(1, 99)] for key in KEYS]
    stale = [[(r.event.call_id, r.mapped) for r in view.key(key).stale] for key in KEYS]
    return [d.event for d in view.deliveries], spans, stale, view.carried, view.calls.counts, view.calls.number


def test_each_query_is_answered_as_of_then() -> None:
    cursor = Cursor(told().events(), "main")
    assert not cursor.view.covers(FILE, 1, 1)
    assert cursor.after("c1").covers(FILE, 1, 50)
    assert not cursor.view.covers(FILE, 51, 100)
    assert cursor.after("c2").covers(FILE, 1, 100)
    assert not cursor.after("c3").covers(FILE, 1, 1)
    assert cursor.end().covers(FILE, 1, 100)


def test_it_goes_back_as_well_as_forward() -> None:
    cursor = Cursor(told().events(), "main")
    cursor.end()
    assert not cursor.after("c1").covers(FILE, 51, 51)
    assert [record.event.call_id for record in cursor.past] == ["c1"]  # type: ignore[union-attr]


def test_what_a_call_wrote_belongs_to_it() -> None:
    cursor = Cursor(told().events(), "main")
    assert cursor.after("c2").covers(FILE, 1, 1)
    assert not cursor.after("c3").covers(FILE, 1, 1)


def test_what_the_harness_did_to_a_result_later_lies_ahead_of_its_call() -> None:
    session = told()
    session.settle("c4", part(1, 10))
    cursor = Cursor(session.events(), "main")
    assert cursor.after("c4").covers(FILE, 1, 100)
    assert not cursor.end().covers(FILE, 11, 100)


def test_an_id_that_was_used_twice_names_the_newer_call() -> None:
    session = told()
    session.observe("head -n 5 f", part(1, 5), call_id="c1")
    cursor = Cursor(session.events(), "main")
    assert cursor.after("c1").is_visible("c4")
    assert [record.event.label for record in cursor.past][-1] == "head -n 5 f"  # type: ignore[union-attr]


def test_a_call_that_was_never_made_is_an_error_that_names_the_newest_ones() -> None:
    session = told()
    session.fork("searcher").observe("ls", "f\n", call_id="theirs")
    cursor = Cursor(session.events(), "main")
    for unknown in ("c9", "theirs"):
        with pytest.raises(
            LookupError, match=rf"agent main made no call '{unknown}': its newest calls are c4, c3, c2, c1$"
        ):
            cursor.after(unknown)
    with pytest.raises(NoSuchCall, match="made none"):
        Cursor([], "main").after("c1")


def test_another_readers_writes_are_seen_and_nothing_else_of_it() -> None:
    session = told()
    child = session.fork("searcher")
    child.observe("cat g", TEXT, call_id="d1")
    child.wrote("f", call_id="d2")
    view = Cursor(session.events(), "main").end()
    assert not view.is_visible("d1")
    assert not view.covers(FILE, 1, 1)


@given(histories())
def test_at_each_position_the_view_is_the_one_folded_from_what_lies_behind(log: list[Event]) -> None:
    cursor = Cursor(records_of(log), "main")
    for position in range(len(log) + 1):
        fresh = View()
        for event in log[:position]:
            fresh.apply(event)
        assert seen(cursor.view) == seen(fresh)
        assert (cursor.step() is None) == (position == len(log))
