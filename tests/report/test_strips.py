"""The strips of a page, held against the view at each step of the time line."""

from __future__ import annotations

from hypothesis import given

from readcache import Session
from readcache.model.cursor import Cursor
from readcache.model.events import Event, Record
from readcache.model.key_view import Reference
from readcache.model.spans import Spans, merge_spans, subtract
from readcache.report.page.lanes import Lane, lanes_of
from readcache.report.page.strips import Bar
from tests.helpers.strategies import KEYS, histories
from tests.report.told import TEXT, part


def lines_at(bars: list[Bar], at: int) -> Spans:
    return merge_spans((bar.first, bar.last) for bar in bars if bar.since <= at < bar.until)


def numbered(references: list[Reference]) -> Spans:
    pieces = (reference.piece for reference in references)
    return merge_spans((piece.first, piece.first + piece.count - 1) for piece in pieces if piece.first)


def assert_as_the_view(lane: Lane, records: list[Record]) -> None:
    """After the last event of each step, the bars are what is visible."""
    strips = {strip.key: strip for strip in lane.strips}
    keys = {*KEYS, *strips}
    ends = [step.record.seq for step in lane.steps[1:]]
    for step, next_begins in zip(lane.steps, [*ends, records[-1].seq + 1], strict=True):
        view = Cursor([record for record in records if record.seq < next_begins], lane.agent_id).end()
        for key in keys:
            known = view.key(key)
            current = numbered(known.current)
            strip = strips.get(key)
            assert (lines_at(strip.current.bars, step.at) if strip else ()) == current
            stale = subtract(numbered(known.stale), current)
            assert (lines_at(strip.stale.bars, step.at) if strip else ()) == stale


@given(histories())
def test_at_each_step_the_strips_show_what_the_view_holds(log: list[Event]) -> None:
    records = [Record(seq, "main", 0.0, event) for seq, event in enumerate(log, 1)]
    for lane in lanes_of(records):
        assert_as_the_view(lane, records)


def test_a_session_with_all_that_can_happen_is_drawn_as_the_view_has_it() -> None:
    session = Session("/w")
    session.observe("sed -n '10,30p' f", part(10, 30), call_id="c1")
    session.observe("sed -n '20,60p' f", part(20, 60), call_id="c2")
    session.observe("sed -i s/a/b/ f", "", call_id="c3")
    session.observe("sed -n '25,40p' f", part(25, 40), call_id="c4")
    session.settle("c4", part(25, 30))
    session.compacted(keep=["c4"])
    session.observe("cat f", TEXT, call_id="c5")
    session.rewind("c4")
    session.observe("head -n 5 f", part(1, 5), call_id="c6")
    records = session.events()
    (lane,) = lanes_of(records)
    assert_as_the_view(lane, records)
    (strip,) = lane.strips
    assert [(bar.since, bar.first, bar.last) for bar in strip.current.bars if bar.until == 2] == [
        (0, 10, 30),
        (1, 31, 60),
    ]
    assert strip.writes[0] == 2


def test_bars_of_one_shade_never_overlap() -> None:
    session = Session("/w")
    for n, (first, last) in enumerate([(1, 50), (30, 80), (1, 100), (5, 6)]):
        session.observe(f"sed -n '{first},{last}p' f", part(first, last), call_id=f"c{n}")
    (strip,) = lanes_of(session.events())[0].strips
    drawn = [
        (line, at)
        for bar in strip.current.bars
        for line in range(bar.first, bar.last + 1)
        for at in range(bar.since, bar.until)
    ]
    assert len(drawn) == len(set(drawn))
