"""What a marker says, loosely: its words are chosen in `marker` and may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Session
from readcache.judging.marker import Source, find_markers, name_lines, tag, write_gone, write_marker
from tests.helpers import strategies
from tests.helpers.files import TEXT, text


def the_marker(session: Session, text: str) -> str:
    (marker,) = session.markers_in(text)
    return marker


def test_a_whole_read_is_called_a_file_unchanged() -> None:
    session = Session("/w")
    session.observe("cat src/app.py", TEXT)
    session.observe("pwd", "/w\n")
    marker = the_marker(session, session.observe("cat src/app.py", TEXT).text)
    assert "FILE_UNCHANGED" in marker
    assert "app.py" in marker
    assert "1-60" in marker
    assert "cat" in marker
    assert "2 calls ago" in marker
    assert marker.rstrip("]").endswith("repeat the request to see")
    assert len(marker) <= 120


def test_a_part_is_named_by_its_lines() -> None:
    session = Session("/w")
    session.observe("sed -n '5,30p' app.py", text(5, 30))
    marker = the_marker(session, session.observe("cat app.py", TEXT).text)
    assert "5-30" in marker
    assert "FILE_UNCHANGED" not in marker


def test_an_output_of_another_command_is_named_by_the_command() -> None:
    session = Session("/w")
    session.observe("make -j4 test", TEXT)
    marker = the_marker(session, session.observe("make -j4 test", TEXT).text)
    assert "make -j4 test" in marker


def test_what_the_agent_wrote_itself_is_called_so() -> None:
    session = Session("/w")
    session.wrote("app.py", content=TEXT)
    assert "your own" in the_marker(session, session.observe("cat app.py", TEXT).text)


def test_a_restored_section_is_named_by_its_heading() -> None:
    session = Session("/w")
    session.observe("cat app.py", TEXT)
    plan = session.restore_plan()
    session.compacted(restored=plan)
    assert plan.heading in the_marker(session, session.observe("cat app.py", TEXT).text)


def test_two_sessions_have_two_tags() -> None:
    assert len({tag(f"session {n}") for n in range(40)}) > 35
    assert tag("one") == tag("one")


@given(strategies.texts(), strategies.texts(), st.integers(1, 99))
def test_a_marker_is_one_line_whatever_things_are_called(path: str, label: str, ago: int) -> None:
    what = name_lines(path or "f", [(1, 5), (9, 9)])
    for marker in (write_marker("abcd", what, [Source(label, ago)]), write_gone("abcd", what)):
        assert "\n" not in marker
        assert find_markers(f"before\n{marker}\nafter\n", "abcd") == [marker]
        assert find_markers(marker, "abce") == []


@given(strategies.texts())
def test_text_without_a_tag_of_the_session_holds_no_marker(text: str) -> None:
    assert find_markers(text, "abcd") == []


@pytest.mark.parametrize("text", ["see {}", "{} ", " {}", "{}\r"])
def test_a_marker_inside_a_line_is_not_a_marker_line(text: str) -> None:
    marker = write_marker("abcd", "f lines 1-2", [Source("cat f", 1)])
    assert find_markers(text.format(marker), "abcd") == []


def test_an_omission_saves_at_least_the_length_of_its_marker() -> None:
    session = Session("/w", policy=Policy(min_chars=0, count_tokens=len))
    for n in range(1, 60):
        text = TEXT[: n * 20]
        session.observe(f"cat f{n}", text)
        reply = session.observe(f"cat f{n}", text)
        assert reply.text == text or len(text) >= 2 * len(reply.text.rstrip("\n"))
