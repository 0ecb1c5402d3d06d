"""Check which markers count as faults, in stories of a session."""

from __future__ import annotations

import pytest

from readcache import Policy, Session
from readcache.log.store import open_store
from readcache.report.net import fault_rates
from tests.helpers.files import TEXT, text, with_numbers
from tests.report.reported import Clock, gain_of


def new_session(policy: Policy = Policy()) -> Session:  # noqa: B008
    return Session("/w", session_id="s", store=open_store(None), clock=Clock(), local=False, policy=policy)


@pytest.fixture
def session() -> Session:
    """One that was shown a file, and then a marker for all of it."""
    session = new_session()
    session.observe("cat f", TEXT, call_id="source")
    assert session.observe("cat f", TEXT, call_id="marker").tokens_saved > 0
    return session


def faults(session: Session) -> tuple[float, float]:
    """Return the number of markers that were shown, and the number of faults."""
    sums = gain_of(session.reader.log.store).total.sums
    return sums["markers"], sums["faults"]


def work(session: Session, calls: int) -> None:
    for number in range(calls):
        session.observe(f"echo {number}", f"{number}\n")


@pytest.mark.parametrize(("between", "found"), [(0, 1), (4, 1), (9, 1), (10, 0)])
def test_the_same_lines_within_ten_calls_are_one(session: Session, between: int, found: int) -> None:
    work(session, between)
    session.observe("cat -n f", with_numbers())
    assert faults(session)[1] == found


def test_the_same_request_is_one_whatever_it_printed(session: Session) -> None:
    for _ in range(3):
        session.observe("make test", text(of="test"))
    assert faults(session) == (2, 1)


def test_a_marker_is_a_fault_once(session: Session) -> None:
    for command in ("head -n 55 f", "head -n 54 f", "head -n 53 f"):
        session.observe(command, text(1, int(command.split()[2])))
    assert faults(session) == (4, 3), "all but the last one"


def test_a_marker_that_nobody_asks_about_is_none(session: Session) -> None:
    work(session, 12)
    assert faults(session) == (1, 0)
    assert fault_rates(gain_of(session.reader.log.store).total) == {"markers": "0.0", "calls": "0.0"}


@pytest.mark.parametrize(("first", "last"), [(31, 160), (41, 60)])
def test_other_lines_and_a_few_lines_are_none(session: Session, first: int, last: int) -> None:
    session.observe(f"sed -n '{first},{last}p' f", text(first, last))
    assert faults(session)[1] == 0


def test_after_a_write_of_the_file_it_is_none_and_of_another_file_it_is_one(session: Session) -> None:
    session.wrote("g")
    session.observe("cat -n f", with_numbers())
    assert faults(session)[1] == 1
    session.wrote("f")
    session.observe("cat f", TEXT)
    assert faults(session)[1] == 1


@pytest.mark.parametrize("kept", [(), ("marker",), ("source",)])
def test_what_is_not_visible_any_more_is_none(session: Session, kept: tuple[str, ...]) -> None:
    session.compacted(keep=kept)
    session.observe("cat f", TEXT)
    assert faults(session)[1] == 0


def test_calls_made_at_once_had_not_seen_the_marker() -> None:
    session = new_session()
    session.observe("cat f", TEXT)
    with session.batch():
        session.observe("cat f", TEXT)
        session.observe("head -n 50 f", text(1, 50))
    assert faults(session) == (2, 0)


def test_a_marker_that_was_not_delivered_counts_nowhere() -> None:
    session = new_session()
    session.observe("cat f", TEXT)
    session.observe("cat f", TEXT, call_id="late", commit=False)
    session.observe("head -n 55 f", text(1, 55))
    assert faults(session) == (1, 0), "the marker of the third call was shown"
    session.commit("late")
    session.observe("head -n 54 f", text(1, 54))
    assert faults(session) == (3, 2)


def test_each_marker_of_a_reply_counts_alone() -> None:
    session = new_session(Policy.named("max"))
    session.observe("sed -n '1,40p' f; sed -n '81,120p' f", text(1, 40) + text(81, 120))
    session.observe("sed -n '1,120p' f", text(1, 120), call_id="two markers")
    assert faults(session) == (2, 0)
    session.observe("sed -n '2,40p' f", text(2, 40))
    assert faults(session) == (3, 1)
