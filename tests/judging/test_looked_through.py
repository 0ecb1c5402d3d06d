"""What stands in front of lines: left out with them only where the source shows as much, or the marker says it."""

from __future__ import annotations

import pytest

from readcache import Outcome, Policy, Reason, Reply, Session
from tests.helpers.files import LINES, TEXT, text, with_numbers
from tests.helpers.replies import omits, sources

NO_MORE = "without numbers"


def the_marker(session: Session, reply: Reply) -> str:
    (marker,) = session.markers_in(reply.text)
    return marker


# ------------------------------------------------------------ numbers


@pytest.mark.parametrize(("first", "last"), [(5, 30), (1, 60)])
def test_lines_shown_without_numbers_stand_for_numbered_ones_when_the_marker_names_the_numbers(
    session: Session, first: int, last: int
) -> None:
    session.observe("cat f", TEXT)
    reply = session.observe(f"nl -ba f | sed -n '{first},{last}p'", with_numbers(first, last))
    assert reply.outcome is Outcome.UNCHANGED
    marker = the_marker(session, reply)
    assert marker.startswith("[LEFT_OUT ")
    assert f"f lines {first}-{last}, shown above by" in marker
    assert NO_MORE in marker


def test_that_numbers_are_missing_is_said_of_no_source_that_has_them(session: Session) -> None:
    session.observe("cat -n f", with_numbers())
    assert NO_MORE not in the_marker(session, session.observe_read("f", with_numbers(form="{}→"), numbered=True))


def test_of_several_sources_those_without_numbers_are_named_so(session: Session) -> None:
    session.observe("sed -n '1,30p' f", text(1, 30))
    session.observe("nl -ba f | sed -n '31,60p'", with_numbers(31, 60))
    marker = the_marker(session, session.observe("cat -n f", with_numbers()))
    assert marker.count(NO_MORE) == 1
    assert f"1-30 by \"sed -n '1,30p' f\" {NO_MORE}" in marker


def test_lines_whose_own_numbers_nobody_knows_stand_for_no_numbered_ones(session: Session) -> None:
    session.observe("./show f", TEXT)
    session.observe("cat g* f", TEXT)
    assert not omits(session.observe("cat -n f", with_numbers()))


def test_numbers_that_are_not_those_of_the_file_are_shown(session: Session) -> None:
    session.observe("cat f", TEXT)
    counted = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(TEXT.splitlines(), 100))
    assert not omits(session.observe("nl -ba -v 100 f", counted))


def test_a_blank_after_the_number_may_be_the_lines_own(session: Session) -> None:
    session.observe("cat f", TEXT)
    reply = session.observe_read("f", with_numbers(form="{:05}| "), numbered=True)
    assert (reply.outcome, reply.reason) == (Outcome.FULL, Reason.UNNUMBERED)


def test_lines_that_moved_are_named_by_both_numbers() -> None:
    session = Session("/w", policy=Policy(delta=True))
    session.observe("sed -n '9,39p' f", text(9, 39))
    session.observe("sed -i '1i inserted' f", "")
    moved = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(LINES[8:39], 10))
    marker = the_marker(session, session.observe("nl -ba f | sed -n '10,40p'", moved))
    assert "f lines 10-40," in marker
    assert f"as lines 9-39 {NO_MORE}" in marker


# ------------------------------------------------------------ grep -n


def grep(first: int, last: int, *selected: int) -> str:
    """What `grep -n` with context prints."""
    return "".join(f"{n}{':' if n in selected else '-'}{LINES[n - 1]}\n" for n in range(first, last + 1))


@pytest.mark.parametrize("command", ["cat f", "cat -n f"])
def test_which_lines_a_search_selected_is_said_where_the_source_does_not_show_it(
    session: Session, command: str
) -> None:
    session.observe(command, with_numbers() if "-n" in command else TEXT, call_id="whole")
    reply = session.observe("grep -n -B5 -A5 'number 20' f", grep(15, 25, 20))
    assert sources(reply) == {"whole"}
    marker = the_marker(session, reply)
    assert "f lines 15-25 (selected: 20)" in marker
    assert (NO_MORE in marker) == (command == "cat f")


def test_a_search_shown_again_says_nothing_of_what_it_selected(session: Session) -> None:
    session.observe("grep -n -B5 -A9 'number 20' f", grep(15, 29, 20))
    marker = the_marker(session, session.observe("grep -n -B5 -A5 'number 20' f", grep(15, 25, 20)))
    assert "selected" not in marker
    marker = the_marker(session, session.observe("grep -n -B8 -A2 'number 23' f", grep(15, 25, 23)))
    assert "(selected: 23)" in marker


def test_a_search_that_selects_here_and_there_is_shown(session: Session) -> None:
    session.observe("cat f", TEXT)
    assert not omits(session.observe("grep -n -C1 2 f", grep(1, 40, *range(2, 40, 3))))
