"""What the drawings of a page are made of, held against the view and the log."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from readcache import RestoreItem, RestorePlan, Session, count_by_chars
from readcache.cli.show import watched
from readcache.core.model.cursor import Cursor
from readcache.core.model.events import Event, Record
from readcache.report.page.context import Cell, FileRow, left_out_of
from readcache.report.page.html import HEIGHT, brief, height_of, steps_path, ticks
from readcache.report.page.overview import MOST, home_of, short_names
from readcache.report.page.timelines import Timeline, timelines_of
from tests.helpers.strategies import histories
from tests.report.parsed import page_of, parse
from tests.report.told import TEXT, part


def timeline_of(session: Session) -> Timeline:
    return timelines_of(session.events())[0]


# ---------------------------------------------------------------- the context


@given(histories())
def test_after_each_step_the_context_is_what_the_view_holds(log: list[Event]) -> None:
    records = [Record(seq, "main", 0.0, event) for seq, event in enumerate(log, 1)]
    for timeline in timelines_of(records):
        ends = [*(step.record.seq for step in timeline.steps[1:]), records[-1].seq + 1]
        for step, next_begins in zip(timeline.steps, ends, strict=True):
            view = Cursor([record for record in records if record.seq < next_begins], timeline.agent_id).end()
            texts = [delivery.event for delivery in view.deliveries]
            assert step.sizes.in_view == sum(len(event.text) for event in texts)
            assert 0 <= step.sizes.back <= step.sizes.in_view
            immediate_rereads = view.calls.immediate_rereads
            left = (left_out_of(event) for event in texts if event.when.call not in immediate_rereads)
            assert step.sizes.spared <= sum(chars for chars in left if chars > 0)


def test_what_is_left_out_counts_until_it_bounces_or_leaves() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.observe("head -n 90 f", part(1, 90), call_id="c2")
    spared = len(part(1, 90)) - len(session.events()[-1].event.text)  # type: ignore[union-attr]
    session.observe("ls", "f\n", call_id="c3")
    session.compacted(keep=["c3"])
    session.observe("cat f", TEXT, call_id="c4")
    session.observe("tail -n 60 f", part(41, 100), call_id="c5")
    session.observe("tail -n 60 f", part(41, 100), call_id="c6")  # asks again at once
    sizes = [step.sizes for step in timeline_of(session).steps]
    assert [one.spared for one in sizes] == [0, spared, spared, 0, 0, sizes[5].spared, 0]
    assert sizes[5].spared > 0
    assert sizes[3].in_view == len("f\n")


def test_tokens_in_view_are_those_of_the_model_that_asked_on_the_page_and_in_watch() -> None:
    session = Session("/w", host="claude-code")
    session.use_model("claude-opus-5")
    session.observe("cat f", TEXT, call_id="c1")
    (timeline,) = timelines_of(session.events())
    size = len(TEXT) // 2
    assert timeline.steps[-1].tokens_in_view == size
    assert f"in view: at most {brief(size)} tokens, {brief(size)} in the end" in page_of(session.events())
    cursor = Cursor(session.events(), "main")
    cursor.end()
    panel = watched(cursor, session.session_id, 9)
    assert f"about {size:,} tokens of results in view" in str(panel.title)


def test_cliffs_have_figures_where_there_is_room() -> None:
    session = Session("/w")
    for n in range(40):
        session.observe("cat f", TEXT, call_id=f"c{n}")
        session.compacted()
    page = parse(page_of(session.events()))
    (marks,) = page.all("div", "marks")
    assert {mark.text for mark in marks.all("span")} == {"−1.3k"}
    assert len(marks.all("span")) == 40
    assert 10 < sum("hidden" not in mark.attributes for mark in marks.all("span")) < 18
    assert "40 compactions took away 53k tokens" in page.all("p", "legend")[0].text


def test_what_the_harness_cut_is_told() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.observe("ls", "f\n", call_id="c2")
    session.settle("c1", "nothing any more")
    tokens = brief(count_by_chars("x" * (len(TEXT) - len("nothing any more"))))
    assert f"cleared, cut or shortened by the harness: {tokens}" in page_of(session.events())


def test_what_comes_back_is_a_restored_section_or_read_again() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    section = RestorePlan((RestoreItem("/w/f", 1, 1, "line 1 of a file with some words", 8, "test"),))
    session.compacted(restored=section)
    session.observe("sed -n '41,100p' f", part(41, 100), call_id="c2")
    sizes = [step.sizes for step in timeline_of(session).steps]
    assert sizes[1].back == 0
    restored = sizes[2].back
    assert restored == sizes[2].in_view > 0
    assert sizes[3].back == restored + len(part(41, 100))


# ---------------------------------------------------------------- files and calls


def test_each_call_says_how_often_its_lines_were_asked_for() -> None:
    session = Session("/w")
    session.observe("head -n 50 f", part(1, 50), call_id="c1")
    session.observe("sed -n '41,64p' f", part(41, 64), call_id="c2")  # some of it again, and that is left out
    session.observe("cat g", TEXT.replace("file", "other"), call_id="c3")
    session.wrote("f", content="", call_id="c4")
    session.observe("sed -n '1,50p' f", part(1, 50).upper(), call_id="c5")
    session.observe("sed -n '1,50p' f", part(1, 50).upper(), call_id="c6")  # left out
    f, g = timeline_of(session).files
    assert (f.key, g.key) == ("/w/f", "/w/g")
    assert f.cells == [Cell(0, 1, False), Cell(1, 1, False), Cell(4, 2, False), Cell(5, 3, True)]
    assert (f.again, f.left_out, f.writes) == (10 + 50 + 50, 10 + 50, [3])
    assert g.cells == [Cell(2, 1, False)]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 25), st.booleans()), max_size=15))
def test_times_are_those_of_a_count_for_each_line(asked: list[tuple[int, int, bool]]) -> None:
    row, times, again = FileRow("f"), Counter[int](), 0
    for at, (first, more, is_left_out) in enumerate(asked):
        span = [(first, first + more)]
        row.ask(at, [] if is_left_out else span, span if is_left_out else [])
        times.update(lines := range(first, first + more + 1))
        again += sum(times[line] > 1 for line in lines)
        mean = int(sum(times[line] for line in lines) / len(lines) + 0.5)
        assert row.cells[-1] == Cell(at, mean, is_left_out)
    assert row.again == again


def test_a_file_that_was_found_changed_is_marked() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.observe("cat f", TEXT.replace("line 7 ", "LINE 7 "), call_id="c2")
    assert timeline_of(session).files[0].writes == [1]


# ---------------------------------------------------------------- names and scales


def test_names_are_cut_in_the_middle_and_keep_the_files_own() -> None:
    keys = [f"/home/me/project/packages/core/src/evaluation/{name}.ts" for name in ("grader", "types", "parser")]
    keys += ["/tmp/x", "git:1234:src/a.ts"] + [f"/home/me/project/{n}" for n in range(20)]
    assert home_of(keys) == "/home/me/project/"
    names = short_names(keys)
    assert names[keys[0]] == "packages/core/src…uation/grader.ts"
    assert names["/tmp/x"] == "/tmp/x"
    assert names["git:1234:src/a.ts"] == "git:1234:src/a.ts"


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    keys = [f"/w/{'a' * 40}/{n}/{'b' * 40}/app.py" for n in range(30)]
    names = short_names(keys)
    assert len({*names.values()}) == len(keys)
    assert short_names(["/w/f"]) == {"/w/f": "/w/f"}


@given(st.lists(st.text("ab/", min_size=1, max_size=60), unique=True, max_size=12))
def test_no_two_names_are_alike(keys: list[str]) -> None:
    names = short_names(keys)
    assert [*names] == keys
    assert len({*names.values()}) == len(keys)
    if len(keys) == 1:
        assert len(names[keys[0]]) <= MOST


@given(st.integers(0, 10**9), st.integers(2, 10))
def test_a_scale_has_few_round_steps_and_room_for_the_highest(most: int, parts: int) -> None:
    scale = ticks(most, parts)
    assert most <= scale[-1] < most + scale.step or most == 0
    assert len(scale) <= parts + 1
    assert str(scale.step).rstrip("0") in ("1", "2", "5")


def test_an_area_has_the_heights_of_its_values() -> None:
    scale = ticks(100)
    assert height_of(0, scale) == HEIGHT
    assert height_of(scale[-1], scale) == 0
    assert steps_path([0, 50, 50, 100], ticks(100)) == f"M0 {HEIGHT}H1V{HEIGHT // 2}H3V0H4V{HEIGHT}z"
