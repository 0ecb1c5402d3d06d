"""Which omissions count as bounced, in stories of a session."""

from __future__ import annotations

import pytest

from readcache import Policy, Session
from tests.helpers.files import TEXT, text, with_numbers


@pytest.fixture
def session() -> Session:
    """One that left the whole of a file out, and not for little."""
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="first")
    assert session.observe("cat f", TEXT, call_id="left out").tokens_saved > 0
    return session


def bounces(session: Session) -> int:
    return session.stats().get("bounces", 0)


def test_an_omission_that_nobody_asks_about_is_none(session: Session) -> None:
    session.observe("make test", "ok\n")
    session.observe("cat g", text(of="g"))
    assert bounces(session) == 0


@pytest.mark.parametrize("between", [0, 2])
def test_the_same_request_right_after_it_is_one(session: Session, between: int) -> None:
    for n in range(between):
        session.observe(f"echo {n}", f"{n}\n")
    session.observe("cat f", TEXT)
    assert bounces(session) == 1


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("head -n 40 f", text(1, 40)),
        ("cat -n f", with_numbers()),
        ("sed -n '20,60p' f", text(20, 60)),
        ("nl -ba f; cat g", with_numbers() + text(of="g")),
    ],
)
def test_half_of_its_lines_asked_for_in_another_way_is_one(session: Session, command: str, output: str) -> None:
    session.observe(command, output)
    assert bounces(session) == 1


def test_a_few_of_its_lines_are_none(session: Session) -> None:
    session.observe("sed -n '20,40p' f", text(20, 40))
    assert bounces(session) == 0


@pytest.mark.parametrize(("first", "last"), [(1, 80), (11, 80), (31, 80)])
def test_a_read_of_mostly_other_lines_is_none(first: int, last: int) -> None:
    """The reader goes on in the file, and its read starts with lines that a marker replaced."""
    session = Session("/w")
    session.observe("head -n 30 f", text(1, 30), call_id="first")
    assert session.observe("head -n 50 f", text(1, 50), call_id="partial").tokens_saved > 0
    session.observe(f"sed -n '{first},{last}p' f", text(first, last))
    assert bounces(session) == 0


def test_lines_of_other_files_in_the_same_call_change_nothing(session: Session) -> None:
    session.observe("head -n 60 f; cat g", text(1, 60) + text(of="g"))
    assert bounces(session) == 1


def test_what_bounced_is_not_counted_as_saved(session: Session) -> None:
    before = session.stats()["tokens_saved"]
    session.observe("cat f", TEXT)
    after = session.stats()
    assert after["tokens_saved"] == 0
    assert after["tokens_bounced"] == before


def test_what_is_left_out_again_of_a_bounce_is_saved(session: Session) -> None:
    before = session.stats()["tokens_saved"]
    again = session.observe("head -n 50 f", text(1, 50))
    assert again.tokens_saved > 0
    assert session.stats()["tokens_saved"] == again.tokens_saved
    assert session.stats()["tokens_bounced"] == before


def test_each_omission_bounces_once(session: Session) -> None:
    session.observe("cat -n f", with_numbers())
    session.observe("sed -n '11,60p' f", text(11, 60))
    session.observe("echo", "\n")
    assert bounces(session) == 2, "of the file, and of its numbered lines"
    assert session.stats()["calls"] == 5


def test_four_calls_later_is_no_bounce(session: Session) -> None:
    for n in range(4):
        session.observe(f"echo {n}", f"{n}\n")
    session.observe("head -n 40 f", text(1, 40))
    assert bounces(session) == 0


def test_after_a_write_the_reader_asks_for_news(session: Session) -> None:
    session.wrote("f")
    session.observe("cat f", TEXT)
    assert bounces(session) == 0


def test_after_a_compaction_the_reader_has_nothing(session: Session) -> None:
    session.compacted()
    session.observe("cat f", TEXT)
    assert bounces(session) == 0


def test_calls_made_at_once_had_not_seen_the_marker() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT)
    with session.batch():
        session.observe("cat f", TEXT)
        session.observe("head -n 40 f", text(1, 40))
    assert bounces(session) == 0


def test_another_command_that_prints_the_same_is_none_when_no_file_is_known_by_it() -> None:
    session = Session("/w")
    for _ in range(2):
        session.observe("make test", TEXT)
    session.observe("make check", TEXT)
    assert bounces(session) == 0


def test_a_reader_that_bounces_often_is_shown_what_is_worth_little() -> None:
    calm, restless = Session("/w", policy=Policy(min_worth=0.1)), Session("/w", policy=Policy(min_worth=0.1))
    for session in (calm, restless):
        for n in range(12):
            path = f"f{n}"
            for _ in range(2 if session is calm else 3):
                session.observe(f"cat {path}", text(of=path))
        session.observe("cat g", text(1, 7, of="g"))
    assert restless.stats()["bounces"] == 12
    assert calm.observe("cat g", text(1, 7, of="g")).tokens_saved > 0
    assert restless.observe("cat g", text(1, 7, of="g")).reason.value == "not_worth"


def test_a_restless_reader_of_whom_no_worth_is_asked_has_every_omission() -> None:
    session = Session("/w", policy=Policy(min_worth=0))
    for n in range(12):
        for _ in range(3):
            session.observe(f"cat f{n}", text(of=f"f{n}"))
    session.observe("cat g", text(1, 8, of="g"))
    assert session.observe("cat g", text(1, 8, of="g")).tokens_saved > 0
