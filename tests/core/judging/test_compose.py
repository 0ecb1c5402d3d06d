"""Replies as texts and segments: nothing is lost between a judgement and what the reader sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Omitted, Outcome, Policy, Reason, Session, Shown
from tests.helpers.files import LINES, text
from tests.helpers.replies import shown
from tests.laws.oracle import marks_of

RANGES = st.tuples(st.integers(1, 60), st.integers(0, 40)).map(lambda r: (r[0], min(60, r[0] + r[1])))


@given(st.lists(RANGES, max_size=4), st.booleans(), st.sampled_from([Policy(), Policy(min_chars=0)]))
def test_the_segments_account_for_every_line(before: list[tuple[int, int]], newline: bool, policy: Policy) -> None:
    session = Session("/w", policy=policy)
    for first, last in before:
        session.observe(f"sed -n '{first},{last}p' f", text(first, last))
    output = text() if newline else text().rstrip("\n")
    reply = session.observe("cat f", output)
    seen = {n for first, last in before for n in range(first, last + 1)}
    for segment in reply.segments:
        if isinstance(segment, Omitted):
            assert set(range(segment.start, segment.end + 1)) <= seen
    marks_of(reply, output, numbered=False)


def test_a_text_that_is_not_cut_is_the_output_to_the_byte() -> None:
    """Banners that say "0 saved" cost tokens."""
    for output in ("", "a", "a\n", "a\r\n\r\nb", "\n\n"):
        reply = Session("/w").observe("cat f", output)
        assert (reply.text, reply.segments, reply.full_text) == (output, (Shown(output),), output)


def test_a_final_newline_is_there_or_not_as_in_the_output() -> None:
    for end in ("", "\n"):
        session = Session("/w")
        session.observe("sed -n '1,30p' f", text(1, 30))
        output = text().rstrip("\n") + end
        reply = session.observe("cat f", output)
        assert shown(reply) == [text(31).rstrip("\n") + end]
        assert reply.text.endswith(LINES[59] + end)


def test_the_middle_may_be_left_out_in_place() -> None:
    session = Session("/w")
    session.observe("sed -n '21,40p' f", text(21, 40), call_id="c1")
    reply = session.observe("cat f", text())
    assert reply.segments == (Shown(text(1, 20)), Omitted("/w/f", 21, 40, ("c1",)), Shown(text(41, 60)))
    assert (reply.outcome, reply.reason) == (Outcome.PARTIAL, Reason.OVERLAP)


def test_what_a_partial_reply_shows_is_a_source_in_its_turn() -> None:
    session = Session("/w")
    session.observe("head -n 30 f", text(1, 30), call_id="c1")
    session.observe("cat f", text(), call_id="c2")
    reply = session.observe("sed -n '31,60p' f", text(31, 60))
    assert reply.segments == (Omitted("/w/f", 31, 60, ("c2",)),)


def test_lines_of_several_sources_are_one_omission_that_names_them_all() -> None:
    session = Session("/w")
    session.observe("sed -n '1,30p' f", text(1, 30), call_id="c1")
    session.observe("sed -n '31,60p' f", text(31, 60), call_id="c2")
    reply = session.observe("cat f", text())
    assert reply.segments == (Omitted("/w/f", 1, 60, ("c1", "c2")),)


def test_lines_of_two_files_in_one_output_each_find_their_source() -> None:
    session = Session("/w")
    other = text().replace("line", "row")
    session.observe("cat f", text(), call_id="c1")
    session.observe("cat g", other, call_id="c2")
    reply = session.observe("cat f; echo ---; cat g", text() + "---\n" + other)
    found = [segment for segment in reply.segments if isinstance(segment, Omitted)]
    assert found in (
        [Omitted("/w/f", 1, 60, ("c1",)), Omitted("/w/g", 1, 60, ("c2",))],
        [Omitted(None, 1, 121, ("c1", "c2"))],
    )


def test_an_identical_output_is_numbered_by_its_own_lines() -> None:
    session = Session("/w")
    session.observe("make", text(), call_id="c1")
    reply = session.observe("make", text())
    assert reply.segments == (Omitted(None, 1, 60, ("c1",)),)


@pytest.mark.parametrize("numbered", [False, True])
def test_a_read_tools_header_and_reminder_are_passed_on(numbered: bool) -> None:
    def output(first: int, last: int) -> str:
        body = [f"{n:5}→{LINES[n - 1]}" if numbered else LINES[n - 1] for n in range(first, last + 1)]
        return "\n".join(body) + "\n" + ("\n<system-reminder>be careful</system-reminder>\n" if numbered else "")

    session = Session("/w")
    session.observe_read("f", output(1, 60), numbered=numbered, call_id="c1")
    reply = session.observe_read("f", output(5, 40), start=5, end=40, numbered=numbered)
    assert Omitted("/w/f", 5, 40, ("c1",)) in reply.segments
    assert ("be careful" in reply.text) is numbered
    assert not session.view.covers("/w/f", 61, 61)


def test_what_was_left_out_is_told_with_its_marker_and_its_lines() -> None:
    session = Session("/w")
    session.observe("sed -n '11,30p;41,60p' f", text(11, 30) + text(41, 60), call_id="c1")
    reply = session.observe("cat f", text().rstrip("\n"))
    (first, marker, lines), (second, last_marker, last_lines) = reply.omissions()
    assert (first, second) == tuple(segment for segment in reply.segments if isinstance(segment, Omitted))
    assert (lines, last_lines) == (LINES[10:30], LINES[40:60])
    assert reply.text == text(1, 10) + marker + "\n" + text(31, 40) + last_marker + "\n"
    assert session.observe("cat g", text(of="other")).omissions() == []


@pytest.mark.parametrize(("head", "tail"), [("", ""), ("Output: ", " end"), ("<out>\n", "\n</out>")])
def test_a_frame_is_no_part_of_what_was_left_out(head: str, tail: str) -> None:
    """Also where the host's words and the first line of the output share a line."""
    session = Session("/w")
    for _ in range(2):
        reply = session.observe("cat f", head + text() + tail, frame=lambda _: (head, text(), tail))
    ((_, marker, lines),) = reply.omissions()
    assert (marker[0], marker[-1], lines) == ("[", "]", LINES[:60])


def test_of_thousands_of_omissions_the_longest_are_made() -> None:
    lines = [f"line {n} of a long file, as no other" for n in range(20_000)]
    session = Session("/r", policy=Policy(any_output=True, max_markers=2))
    session.observe("python all.py", "".join(f"{line}\n" for line in lines))
    longest = {7: 300, 11: 400}  # number of the stretch -> its lines; the others have eight
    spans = [lines[15 * n : 15 * n + longest.get(n, 8)] for n in (*range(12), *range(40, 1_300))]
    shown = "".join(f"{line}\n" for n, span in enumerate(spans) for line in (*span, f"new {n}"))
    reply = session.observe("python some.py", shown)
    assert [len(left_out) for _, _, left_out in reply.omissions()] == [300, 400]


def test_an_output_of_very_many_short_lines_is_not_compared() -> None:
    session = Session("/r")
    output = "x\n" * 100_001
    assert session.observe("cat f", output).reason is Reason.TOO_LARGE
    assert session.observe("cat f", output).text == output
