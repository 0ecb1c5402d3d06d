"""Failures that users of such caches reported: ranges, views, truncation; on real files, by the read tool."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from readcache import Budget, Head, HeadTail, Omitted, Outcome, Policy, Reason, Session
from tests.helpers.files import LINES, text, with_numbers

TEXT = text(1, 200)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "f").write_text(TEXT)
    return Session(tmp_path)


def change(session: Session, number: int) -> str:
    """Rewrites one line of the file; returns the new line."""
    path = Path(session.root, "f")
    new = f"line number {number} is another one now, and longer than it was before"
    path.write_text(path.read_text().replace(LINES[number - 1], new))
    return new


def test_lines_that_were_never_shown_are_shown_although_the_file_is_unchanged(session: Session) -> None:
    """A range never shown was "unchanged", as the whole file was hashed."""
    session.read("f", start=1, end=60)
    assert session.read("f", start=61, end=120).text == text(61, 120)
    assert session.read("f").text.endswith(text(121, 200))


def test_a_change_outside_the_range_read_is_still_delivered_later(session: Session) -> None:
    """A change outside the range read was never delivered."""
    session.read("f")
    new = change(session, 150)
    session.read("f", start=1, end=40)
    assert new in session.read("f").text


def test_after_a_full_read_a_range_can_still_be_had(session: Session) -> None:
    """After a full read every range was refused."""
    session.read("f")
    assert session.read("f", start=10, end=60).reason is Reason.COVERED
    assert session.read("f", start=10, end=60).text == text(10, 60)


def test_a_filtered_read_does_not_stand_for_a_full_one(session: Session) -> None:
    """A filtered read satisfied a later full one."""
    session.observe("grep -n 'number 1' f", with_numbers(10, 19, form="{}:"))
    reply = session.read("f")
    assert reply.text.startswith(text(1, 9))
    assert reply.text.endswith(text(20, 200))


def test_the_lines_beyond_a_truncated_default_read_are_never_refused(session: Session) -> None:
    """The lines beyond a truncated default read were refused."""
    shown = text(1, 80) + "(truncated: the file has 200 lines)\n"
    session.observe_read("f", shown)
    for _ in range(3):
        reply = session.observe_read("f", text(100, 160), start=100, end=160)
        assert reply.text == text(100, 160) or reply.outcome is Outcome.UNCHANGED
    assert session.stats()["not_seen"] == 2


@pytest.mark.parametrize("numbered", [False, True])
def test_a_truncated_read_counts_for_the_lines_that_it_showed(session: Session, numbered: bool) -> None:
    """A truncated read counted as a full one. After a truncated read a review could not be trusted."""
    shortened = (with_numbers(1, 80, form="{:6}→") if numbered else text(1, 80)) + "\n<truncated>\n"
    session.observe_read("f", shortened, numbered=numbered)
    assert session.read("f").text.endswith(text(81, 200))


def test_a_file_that_another_tool_could_not_show_is_not_seen(session: Session) -> None:
    for numbered in (False, True):
        session.observe_read("f", "Error: the file exceeds the limit of 25000 tokens\n" * 9, numbered=numbered)
    assert session.read("f").text == TEXT


@pytest.mark.parametrize("clip", [Head(2_000), HeadTail(1_000, 1_000)])
def test_a_preview_is_credited_with_what_it_shows(tmp_path: Path, clip: Head | HeadTail) -> None:
    """A preview was recorded as a read."""
    (tmp_path / "f").write_text(TEXT)
    session = Session(tmp_path, policy=Policy(clip=clip))
    session.read("f")
    assert text(60, 120) in session.read("f").text


def test_bytes_that_changed_do_not_count_as_seen(session: Session) -> None:
    """A "full" flag outlived the bytes that it was about."""
    path = os.path.join(session.root, "f")
    session.read("f")
    assert session.view.covers(path, 1, 200)
    change(session, 20)
    session.read("f", start=15, end=25)
    assert session.view.covers(path, 15, 25)
    assert not session.view.covers(path, 1, 200)


def test_a_narrow_read_leaves_the_broad_one_as_it_is(session: Session) -> None:
    """A narrow read evicted the broad one."""
    session.read("f", call_id="broad")
    for start in (50, 60, 52):
        reply = session.read("f", start=start, end=start + 30)
        assert [s.sources for s in reply.segments if isinstance(s, Omitted)] == [("broad",)]
        assert session.view.covers(os.path.join(session.root, "f"), 1, 200)


def test_what_the_harness_cut_out_of_the_middle_was_not_shown(session: Session) -> None:
    """What the harness cut out or redacted counted as shown."""
    session.read("f", call_id="c1")
    session.settle("c1", text(1, 40) + "[160 lines redacted]\n" + text(181, 200))
    reply = session.read("f")
    assert text(41, 180) in reply.text
    assert session.read("f", start=1, end=40).outcome is not Outcome.FULL


def test_what_the_harness_cut_out_of_a_restored_section_was_not_shown(session: Session) -> None:
    session.read("f")
    plan = session.restore_plan()
    done = session.compacted(restored=plan)
    assert done.restored_id is not None
    session.settle(done.restored_id, plan.render()[:300])
    assert text(41, 180) in session.read("f").text


def test_a_first_read_is_whole_however_warm_the_store_is(tmp_path: Path) -> None:
    """A warm store answered a session's first read with a marker."""
    (tmp_path / "f").write_text(TEXT)
    with Session(tmp_path, store=tmp_path / "store.db") as before:
        before.read("f")
        before.read("f")
    with Session(tmp_path, store=tmp_path / "store.db") as session:
        assert session.read("f").text == TEXT


@pytest.mark.parametrize("numbered", [False, True])
def test_a_marker_stands_in_place_and_names_the_lines(session: Session, numbered: bool) -> None:
    """Only the lines not yet shown came back, without a word where."""
    session.read("f", start=20, end=100, numbered=numbered)
    lines = session.read("f", start=1, end=120, numbered=numbered).text.splitlines()
    assert "f lines 20-100" in lines[19]
    assert lines[18].endswith(LINES[18])
    assert lines[20].endswith(LINES[100])
    assert len(lines) == 40


def test_varying_windows_and_a_churning_time_do_not_bring_the_bytes_back(session: Session) -> None:
    """Varying ranges or times defeated the guard."""
    path = Path(session.root, "f")
    replies = []
    for n in range(47):
        os.utime(path, ns=(n, n))
        replies.append(session.read("f", start=1 + n, end=80 + 2 * n))
    assert {reply.reason for reply in replies[1:]} == {Reason.OVERLAP}
    assert sum(len(reply.text) for reply in replies) < sum(len(reply.full_text) for reply in replies) / 4


def test_another_part_of_a_file_is_nothing_saved(session: Session) -> None:
    """Another part of a known file was counted as redundant."""
    for start in (1, 51, 101, 151):
        session.read("f", start=start, end=start + 49)
    assert session.stats().get("tokens_saved", 0) == 0


def test_the_limit_of_a_file_is_not_that_of_the_whole_and_what_is_restored_counts(tmp_path: Path) -> None:
    """The total was held against the limit of one file; restored files earned no credit."""
    for n in range(5):
        (tmp_path / f"f{n}").write_text(TEXT.replace("line", f"line of {n}"))
    session = Session(tmp_path)
    for n in range(5):
        session.read(f"f{n}")
    each = session.policy.tokens((tmp_path / "f0").read_text())
    plan = session.restore_plan(budget=Budget(max_files=5, max_tokens=50_000, max_tokens_per_file=each + 100))
    assert {Path(item.path or "").name for item in plan.items} == {f"f{n}" for n in range(5)}
    done = session.compacted(restored=plan)
    reply = session.read("f3")
    assert [s.sources for s in reply.segments if isinstance(s, Omitted)] == [(done.restored_id,)]
