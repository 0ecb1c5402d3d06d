"""The reader who asks again right after a reply of which a part was left out gets that part, and the rest by reference;
and the time after that, everything."""

from __future__ import annotations

import pytest

from readcache import HeadTail, Insist, Omitted, Outcome, Policy, Reason, Reply, Session
from tests.helpers.files import TEXT, text, with_numbers
from tests.helpers.replies import omits, shown, sources

HEAD = text(1, 25)


def after_a_part(session: Session, command: str = "cat f", output: str = TEXT) -> Reply:
    """Asked again right after a reply without the first 25 lines."""
    session.observe("head -n 25 f", HEAD, call_id="head")
    assert session.observe(command, output, call_id="part").outcome is Outcome.PARTIAL
    return session.observe(command, output, call_id="again")


@pytest.mark.parametrize("command", ["cat f", "cat -n f"])
def test_who_insists_on_a_part_is_shown_it_and_finds_the_rest_where_it_was_shown_just_now(
    session: Session, command: str
) -> None:
    output = with_numbers() if "-n" in command else TEXT
    reply = after_a_part(session, command, output)
    assert (reply.outcome, reply.reason) == (Outcome.PARTIAL, Reason.GIVEN_BACK)
    assert shown(reply) == ["".join(output.splitlines(True)[:25])]
    assert sources(reply) == {"part"}
    (marker,) = session.markers_in(reply.text)
    assert f'f lines 26-60, above in "{command}"; repeat to see' in marker
    assert "numbers" not in marker


def test_who_insists_once_more_gets_everything(session: Session) -> None:
    after_a_part(session)
    assert session.observe("cat f", TEXT).text == TEXT
    assert session.observe("cat f", TEXT).outcome is Outcome.UNCHANGED


def test_who_insists_on_all_of_it_gets_everything(session: Session) -> None:
    for expected in (Outcome.FULL, Outcome.UNCHANGED, Outcome.FULL):
        assert session.observe("cat f", TEXT).outcome is expected


def test_who_insists_on_a_part_of_what_has_changed_meanwhile_gets_everything(session: Session) -> None:
    session.observe("head -n 25 f", HEAD)
    session.observe("cat f", TEXT)
    assert not omits(session.observe("cat f", TEXT.replace("number 50", "number fifty")))


def test_what_is_no_longer_visible_is_given_back_as_well(session: Session) -> None:
    session.observe("head -n 25 f", HEAD)
    session.observe("cat f", TEXT, call_id="part")
    reply = session.observe("cat f", TEXT, call_id="part")
    assert reply.text == TEXT
    session = Session("/w", policy=Policy(clip=HeadTail(300, 300)))
    assert after_a_part(session, output=text(1, 30)).text == text(1, 30)


def test_in_a_batch_nobody_points_at_the_reply_of_a_neighbour(session: Session) -> None:
    session.observe("head -n 25 f", HEAD)
    with session.batch():
        session.observe("cat f", TEXT)
        assert session.observe("cat f", TEXT).text == TEXT


def test_a_short_rest_is_shown_with_what_is_given_back(session: Session) -> None:
    session.observe("head -n 58 f", text(1, 58))
    session.observe("cat f", TEXT)
    reply = session.observe("cat f", TEXT)
    assert (reply.text, reply.reason) == (TEXT, Reason.INSISTED)


def test_the_lines_left_out_may_stand_in_the_rest_as_well() -> None:
    session = Session("/w", policy=Policy.named("max"))
    session.observe("./show f", text(1, 25))
    output = text(1, 25) + text(30, 60) + text(1, 25)
    first = session.observe("make", output)
    again = session.observe("make", output)
    gone = [(o.start, o.end) for o in first.segments if isinstance(o, Omitted)]
    assert gone
    kept = [(o.start, o.end) for o in again.segments if isinstance(o, Omitted)]
    assert all(b < c or d < a for a, b in gone for c, d in kept)


def test_who_is_answered_with_markers_however_often_is_so_here_too() -> None:
    session = Session("/w", policy=Policy(insist=Insist.STUB))
    assert after_a_part(session).reason is Reason.COVERED


@pytest.mark.parametrize("between", [[], ["ls", "pwd", "date"]])
def test_no_loop_of_requests_goes_without_a_line(session: Session, between: list[str]) -> None:
    session.observe("head -n 25 f", HEAD)
    replies: list[Reply] = []
    for _ in range(12):
        replies.append(session.observe("cat f", TEXT))
        for command in between:
            session.observe(command, "x\n")
    assert all(any(line in reply.text for reply in replies[n : n + 6]) for n in range(6) for line in TEXT.splitlines())
    assert all(any(reply.text == TEXT for reply in replies[n : n + 6]) for n in range(6))
