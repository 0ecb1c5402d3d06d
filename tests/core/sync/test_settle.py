from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Frame, Head, HeadTail, Omitted, Outcome, Policy, Session
from readcache.core.model.events import Delivered, MappedSpan, MarkerRecord
from readcache.core.model.text import bodies, split_lines
from readcache.core.sync.amend import align, amend, clip_delivery
from tests.helpers.files import TEXT

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=14)


def delivered(lines: list[str], *markers: MarkerRecord) -> Delivered:
    source_map = (MappedSpan(("/w/f",), 0, len(lines), 1, eof=True),) if lines else ()
    return Delivered("c1", "".join(line + "\n" for line in lines), "cat f", source_map=source_map, markers=markers)


@given(WORDS, WORDS)
def test_lines_are_aligned_with_equal_lines_in_order(before: list[str], after: list[str]) -> None:
    moved = align(before, after)
    assert all(before[old] == after[new] for old, new in moved.items())
    pairs = sorted(moved.items())
    assert all(a[1] < b[1] for a, b in pairwise(pairs))


@given(WORDS)
def test_an_unchanged_text_keeps_all(lines: list[str]) -> None:
    event = delivered(lines)
    assert amend(event, event.text).source_map == event.source_map


@given(WORDS, WORDS)
def test_whatever_is_shown_the_pieces_name_lines_that_stand_there(before: list[str], after: list[str]) -> None:
    text = "".join(line + "\n" for line in after)
    for mapped in amend(delivered(before), text).source_map:
        assert after[mapped.at : mapped.at + mapped.count] == before[mapped.first - 1 : mapped.first - 1 + mapped.count]
        assert not mapped.eof or mapped.first + mapped.count - 1 == len(before)


@given(WORDS, WORDS)
def test_a_marker_that_was_cut_away_points_nowhere(before: list[str], after: list[str]) -> None:
    lines = [*before, "[UNCHANGED x]", *before]
    event = delivered(lines, MarkerRecord(len(before), "/w/g", 1, 9, ("c0",), wording="[UNCHANGED x]"))
    for shown in (after, [*after, "[UNCHANGED x]"]):
        markers = amend(event, "".join(line + "\n" for line in shown)).markers
        assert [marker.line >= 0 for marker in markers] == ["[UNCHANGED x]" in shown]
        assert all(shown[marker.line] == "[UNCHANGED x]" for marker in markers if marker.line >= 0)


def test_what_a_cut_leaves_of_a_marker_is_still_that_marker() -> None:
    text = "[UNCHANGED 7f3a: g lines 1-9, same bytes as read 1 call ago; repeat the request to see]"
    event = delivered(["before", text, "after"], MarkerRecord(1, "/w/g", 1, 9, ("c0",), wording=text))
    shown = f"before\n{text[:30]}\n[cut]\n{text[-30:]}\nafter\n"
    (marker,) = amend(event, shown).markers
    assert split_lines(shown)[marker.line] == text[:30]
    gone = clip_delivery(event, ["before\n"])
    assert [marker.line for marker in gone.markers] == [-1]
    assert [marker.line for marker in amend(gone, event.text).markers] == [1]


def test_one_beginning_of_a_marker_is_left_of_the_first_of_several_that_were_cut() -> None:
    wordings = [
        f"[UNCHANGED 7f3a: g lines {n}, same bytes as read 1 call ago; repeat the request to see]" for n in "159"
    ]
    lines = [wordings[0], "between", wordings[1], "more", wordings[2], "after"]
    markers = [MarkerRecord(2 * n, "/w/g", n, n, ("c0",), wording=text) for n, text in enumerate(wordings)]
    shown = f"{wordings[0]}\nbetween\n{wordings[1][:25]}\n[cut]\nafter\n"
    amended = amend(delivered(lines, *markers), shown)
    assert [marker.line for marker in amended.markers] == [0, 2, -1]


def test_a_line_that_is_cut_in_half_is_not_shown() -> None:
    event = delivered([f"line number {n}" for n in range(1, 10)])
    shortened = clip_delivery(event, Head(40).kept(event.text))
    assert [(mapped.first, mapped.count) for mapped in shortened.source_map] == [(1, 2)]


@given(st.integers(0, 200), st.integers(0, 200))
def test_head_and_tail_keep_whole_lines_of_both_ends(head: int, tail: int) -> None:
    lines = [f"line {n} of many" for n in range(12)]
    event = delivered(lines)
    policy = HeadTail(head, tail)
    shown = clip_delivery(event, policy.kept(event.text))
    kept = {mapped.first - 1 + k for mapped in shown.source_map for k in range(mapped.count)}
    texts = split_lines(shown.text)
    for mapped in shown.source_map:
        assert texts[mapped.at : mapped.at + mapped.count] == lines[mapped.first - 1 : mapped.first - 1 + mapped.count]
    size = len(event.text)
    starts = [sum(len(line) + 1 for line in lines[:k]) for k in range(13)]
    whole = {k for k in range(12) if starts[k + 1] <= head or starts[k] >= size - tail or size <= head + tail}
    assert kept <= whole | {k for k in range(12) if starts[k + 1] - 1 <= head or starts[k] >= size - tail}
    assert whole <= kept


def test_what_fits_is_not_touched() -> None:
    event = delivered(["a", "b"])
    assert clip_delivery(event, Head(100).kept(event.text)) is event
    assert clip_delivery(event, HeadTail(2, 2).kept(event.text)) is event


def test_a_very_long_text_keeps_its_common_ends() -> None:
    lines = [f"line {n}" for n in range(8_000)]
    event = delivered(lines)
    source_map = amend(event, "\n".join([*lines[:3_000], "cut", *lines[5_000:]]) + "\n").source_map
    assert [(mapped.first, mapped.count) for mapped in source_map] == [(1, 3_000), (5_001, 3_000)]


def numbered(lines: list[str], first: int, form: str) -> list[str]:
    return [form.format(number, line) for number, line in enumerate(lines, first)]


FORMS = ["{:6}\t{}", "{}→{}", "{:>4}→{}", "{}\t{}", "{}: {}", "{:05}| {}", "{}|{}"]


@given(st.lists(st.text("ab →\t:|1.", max_size=6), min_size=1, max_size=12), st.sampled_from(FORMS))
def test_lines_that_the_host_numbered_itself_are_shown_as_what_they_are(lines: list[str], form: str) -> None:
    event = delivered(lines)
    shown = numbered(lines, 1, form)
    amended = amend(event, "\n".join([*shown, "", "<reminder>not of the file</reminder>"]))
    for mapped in amended.source_map:
        texts = bodies(split_lines(amended.text)[mapped.at : mapped.at + mapped.count], mapped.sep)
        assert texts == lines[mapped.first - 1 : mapped.first - 1 + mapped.count]


@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_them_is_lost(form: str) -> None:
    lines = ["def f():", "", "    return 1", "", "", "x = 2", "12", "# 7: seven", "end", "more", "lines"]
    (mapped,) = amend(delivered(lines), "\n".join(numbered(lines, 1, form))).source_map
    assert (mapped.at, mapped.count, mapped.first, mapped.eof) == (0, len(lines), 1, True)
    assert mapped.sep is not None


def test_lines_with_other_numbers_than_their_own_are_not_credited() -> None:
    lines = [f"line {n}" for n in range(20)]
    assert amend(delivered(lines), "\n".join(numbered(lines, 5, "{}\t{}"))).source_map == ()


def test_what_a_host_numbers_and_cuts_is_credited_as_far_as_it_stands_there() -> None:
    lines = [f"line {n}" for n in range(1, 41)]
    shown = [*numbered(lines, 1, "{}→{}")[:12], "[28 lines cut]"]
    (mapped,) = amend(delivered(lines), "\n".join(shown)).source_map
    assert (mapped.count, mapped.first, mapped.sep, mapped.eof) == (12, 1, "→", False)


def test_a_marker_between_lines_that_the_host_numbered_is_found() -> None:
    text = "[UNCHANGED 7f3a.2: g lines 1-9, above in the read; repeat to see]"
    event = delivered([text, "ten", "eleven", "twelve"], MarkerRecord(0, "/w/g", 1, 9, ("c0",), wording=text))
    event = replace(event, source_map=(MappedSpan(("/w/g",), 1, 3, 10, eof=True),))
    amended = amend(event, "\n".join(numbered([text, "ten", "eleven", "twelve"], 9, "{}\t{}")))
    assert [(mapped.at, mapped.count, mapped.first, mapped.sep) for mapped in amended.source_map] == [(1, 3, 10, "\t")]
    assert [marker.line for marker in amended.markers] == [0]


def test_a_read_that_the_host_numbers_is_a_source_like_any_other() -> None:
    session = Session("/w")
    lines = TEXT.splitlines()
    session.observe_read("f", TEXT, call_id="c1")
    session.settle("c1", "\n".join(numbered(lines, 1, "{:6}→{}")))
    again = session.observe_read("f", TEXT, call_id="c2", edges_only=True)
    assert (again.outcome, again.segments[0]) == (Outcome.UNCHANGED, Omitted("/w/f", 1, len(lines), ("c1",)))
    assert session.view.covers("/w/f", 1, len(lines))


@pytest.mark.parametrize("clip", [HeadTail(500, 500), Head(900)])
def test_behind_a_frame_only_lines_count_that_survive_wherever_the_host_cuts(clip: Head | HeadTail) -> None:
    session = Session("/w", policy=Policy(clip=clip, min_worth=0, min_chars=1))
    status = "Exit code: 0, 0.1 seconds, and then the output of the command:\n"
    for before, after in ((2 * status, ""), ("", 2 * status), (status, status)):
        call_id = f"{len(before)}-{len(after)}"
        body = "".join(f"line {number} of file {call_id} with some words\n" for number in range(60))
        frame = Frame(before.count("\n"), after.count("\n"))
        shown = session.observe(f"cat f{call_id}", before + body + after, frame=frame, call_id=call_id).text
        seen_after = set("\n".join(clip.kept(shown)).split("\n"))
        seen_before = set("\n".join((before, *clip.kept(body), after)).split("\n"))
        credited = body.split("\n")[:-1]
        seen = [line for n, line in enumerate(credited, 1) if session.view.covers(f"/w/f{call_id}", n, n)]
        assert seen
        assert set(seen) <= seen_after & seen_before
