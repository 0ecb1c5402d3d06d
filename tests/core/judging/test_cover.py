"""What the visible lines of a file say of an output: whether the file changed, and was written."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Session
from readcache.core.judging.cover import cover
from readcache.core.model.events import Delivered, MappedSpan, Moment, Wrote
from readcache.core.model.key_view import Delivery
from readcache.core.model.view import View

F = "/w/f"
LINES = st.lists(st.sampled_from(["alpha line", "beta line", "gamma line", "}", ""]), min_size=1, max_size=12)


def shown(lines: list[str], first: int, sep: str | None, call: int) -> Delivered:
    text = "".join((f"{n}{sep}" if sep else "") + line + "\n" for n, line in enumerate(lines, first))
    mapped = MappedSpan((F,), 0, len(lines), first, sep)
    return Delivered(f"c{call}", text, "cat f", source_map=(mapped,), when=Moment(call))


def anywhere(_delivery: Delivery) -> bool:
    return True


@given(LINES, LINES)
def test_a_file_that_differs_anywhere_has_changed(old: list[str], new: list[str]) -> None:
    view = View()
    view.apply(shown(old, 1, None, 1))
    found = cover(view, new, shown(new, 1, None, 2).source_map, anywhere)
    shared = min(len(old), len(new))
    is_truncated = old[: shared - 1] == new[: shared - 1]
    if old[:shared] == new[:shared]:
        assert found.changed == set()
    elif not is_truncated:
        assert found.changed == {F}


@pytest.mark.parametrize(("now", "is_changed"), [("line num", False), ("line number 11 and more", False), ("x", True)])
def test_a_last_line_that_was_cut_off_is_no_change(now: str, is_changed: bool) -> None:
    lines = [f"line number {n}" for n in range(12)]
    view = View()
    view.apply(shown(lines, 1, None, 1))
    output = [*lines[:11], now]
    assert bool(cover(view, output, shown(output, 1, None, 2).source_map, anywhere).changed) is is_changed


def test_lines_from_before_a_write_are_noted() -> None:
    lines = [f"line number {n}" for n in range(12)]
    view = View()
    view.apply(shown(lines, 1, None, 1))
    view.apply(Wrote("c2", (F,), "sed -i", 2))
    assert cover(view, lines, shown(lines, 1, None, 3).source_map, anywhere).written == {F}


def test_a_delivery_that_the_filter_refuses_shows_no_change() -> None:
    view = View()
    view.apply(shown(["one line", "another line"], 1, None, 1))
    source_map = shown(["one line", "a third line"], 1, None, 2).source_map
    assert cover(view, ["one line", "a third line"], source_map, anywhere).changed == {F}
    assert cover(view, ["one line", "a third line"], source_map, lambda _: False).changed == set()


def shown_lines(first: int, last: int) -> str:
    return "".join(f"{n} is the number of this line, and of no other\n" for n in range(first, last + 1))


def test_one_source_that_holds_all_is_preferred_to_several() -> None:
    session = Session("/w")
    session.observe("cat f", shown_lines(1, 40))
    session.observe("sed -n 10,20p f", shown_lines(10, 20))
    (omitted,) = (gap for gap, _, _ in session.observe("head -n 39 f", shown_lines(1, 39)).omissions())
    assert len(omitted.sources) == 1


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
