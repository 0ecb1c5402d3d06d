"""Coverage against the plainest possible search: every run that is named is really there."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Session
from readcache.judging.cover import Coverage, cover
from readcache.model.events import Delivered, Moment, Piece, Wrote
from readcache.model.key_view import Delivery
from readcache.model.view import View

F = "/w/f"
LINES = st.lists(st.sampled_from(["alpha line", "beta line", "gamma line", "}", ""]), min_size=1, max_size=12)
SEPS = st.sampled_from([None, None, "\t", ": ", "→"])


def shown(lines: list[str], first: int, sep: str | None, call: int) -> Delivered:
    text = "".join((f"{n}{sep}" if sep else "") + line + "\n" for n, line in enumerate(lines, first))
    piece = Piece((F,), 0, len(lines), first, sep)
    return Delivered(f"c{call}", text, "cat f", pieces=(piece,), when=Moment(call))


def anywhere(_delivery: Delivery) -> bool:
    return True


def covered(found: Coverage) -> set[int]:
    return {n for run in found.runs for n in range(run.low, run.high)}


@given(st.lists(st.tuples(LINES, st.integers(1, 12), SEPS), max_size=4), LINES, st.integers(1, 12), SEPS, st.booleans())
def test_every_run_stands_at_its_source(
    before: list[tuple[list[str], int, str | None]], lines: list[str], first: int, sep: str | None, delta: bool
) -> None:
    view = View()
    for call, (theirs, start, their_sep) in enumerate(before, 1):
        view.apply(shown(theirs, start, their_sep, call))
    now = shown(lines, first, sep, 99)
    found = cover(view, now.text.split("\n")[:-1], now.pieces, anywhere, delta=delta)
    assert [run.low for run in found.runs] == sorted(run.low for run in found.runs)
    assert len(covered(found)) == sum(run.high - run.low for run in found.runs), "runs are disjoint"
    for run in found.runs:
        theirs, start, their_sep = before[int(run.reference.delivery.event.call_id[1:]) - 1]
        assert theirs[run.at : run.at + run.high - run.low] == lines[run.low : run.high]
        assert their_sep is not None or not (sep or "").endswith(" "), "a blank may be the line's own"
        if sep is not None and not delta:
            assert start + run.at == first + run.low, "the numbers are others there"


@given(LINES, st.data())
def test_the_very_same_lines_are_always_covered(lines: list[str], data: st.DataObject) -> None:
    view = View()
    view.apply(shown(lines, 1, None, 1))
    low = data.draw(st.integers(0, len(lines) - 1))
    high = data.draw(st.integers(low + 1, len(lines)))
    now = shown(lines[low:high], low + 1, None, 2)
    found = cover(view, lines[low:high], now.pieces, anywhere, delta=False)
    assert covered(found) == set(range(high - low))


@given(LINES, LINES)
def test_without_delta_a_file_that_differs_anywhere_is_not_covered_at_all(old: list[str], new: list[str]) -> None:
    view = View()
    view.apply(shown(old, 1, None, 1))
    found = cover(view, new, shown(new, 1, None, 2).pieces, anywhere, delta=False)
    shared = min(len(old), len(new))
    cut_off = old[: shared - 1] == new[: shared - 1]
    if old[:shared] != new[:shared] and not cut_off:
        assert found.changed == {F}
        assert found.runs == []


def test_a_written_file_is_not_covered() -> None:
    lines = [f"line number {n}" for n in range(12)]
    view = View()
    view.apply(shown(lines, 1, None, 1))
    view.apply(Wrote("c2", (F,), "sed -i", 2))
    pieces = shown(lines, 1, None, 3).pieces
    assert cover(view, lines, pieces, anywhere, delta=False).runs == []
    assert cover(view, lines, pieces, anywhere, delta=False).written == {F}


def test_a_delivery_that_the_filter_refuses_covers_nothing() -> None:
    lines = [f"line number {n}" for n in range(12)]
    view = View()
    view.apply(shown(lines, 1, None, 1))
    assert cover(view, lines, shown(lines, 1, None, 2).pieces, lambda _: False, delta=True).runs == []


def test_one_source_that_holds_all_is_preferred_to_several() -> None:
    lines = [f"line number {n}" for n in range(12)]
    view = View()
    view.apply(shown(lines, 1, None, 1))
    view.apply(shown(lines[3:6], 4, None, 2))
    (run,) = cover(view, lines, shown(lines, 1, None, 3).pieces, anywhere, delta=False).runs
    assert run.reference.delivery.event.call_id == "c1"


@pytest.mark.parametrize("few", [250, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_file_after_a_search_with_thousands_of_hits_takes_linear_time(few: int) -> None:
    took = {few: 9e9, 4 * few: 9e9}
    for hits in [few, 4 * few] * 12:
        lines = [f"line {n} of the log says {n * 7919 % 10007} and more" for n in range(1, 4 * hits + 1)]
        found = (f"{n}:{lines[n - 1]}\n{n + 1}-{lines[n]}\n--\n" for n in range(1, 4 * hits, 4))
        session = Session("/w")
        session.observe("grep -n -A1 says big.log", "".join(found))
        began = time.process_time()
        session.observe("cat big.log", "".join(line + "\n" for line in lines))
        took[hits] = min(took[hits], time.process_time() - began)
        if took[4 * few] < 8 * took[few]:  # else another program may have had the processor's caches
            break
    assert took[4 * few] < 10 * took[few], "four times as many hits"
