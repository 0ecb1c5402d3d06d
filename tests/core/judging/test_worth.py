"""What an omission must be worth: tokens carried against one more turn, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from readcache import Policy, Session, UsageError
from readcache.core.judging.compose import ASKED_AGAIN, is_worth
from readcache.core.model.events import Delivered, Moment, Origin
from readcache.core.model.policy import Prices
from readcache.core.model.view import View
from tests.helpers.files import text


def carrying(characters: int) -> View:
    view = View()
    view.apply(Delivered("c1", "x" * characters, "show", when=Moment(1)))
    return view


@given(st.integers(0, 10_000), st.integers(0, 10**6), st.floats(0.001, 1))
@example(1, 0, 0.001)  # fewer than ask again for the lines of a result
def test_it_is_the_price_of_the_tokens_against_a_share_of_a_turn(tokens: int, carried: int, share: float) -> None:
    prices = Prices(write=2, read=0.5, output=4, prompt=1_000, answer=50, turns=10)
    policy = Policy(min_worth=share, prices=prices)
    turn, least = 0.5 * (1_000 + carried / 3) + 4 * 50, max(share, ASKED_AGAIN[Origin.RESULT])
    assert is_worth(carrying(carried), tokens, policy) == (tokens * (2 + 0.5 * 10) >= least * turn)


def test_without_a_least_worth_anything_is() -> None:
    assert is_worth(carrying(10**6), 1, Policy(min_worth=0))


def test_the_more_is_carried_the_more_an_omission_must_save() -> None:
    least = [
        next(n for n in range(10_000) if is_worth(carrying(carried), n, Policy())) for carried in (0, 10**5, 10**6)
    ]
    assert least == sorted(set(least))


def test_what_left_the_conversation_is_not_carried() -> None:
    session = Session("/w")
    session.observe("cat big", "a line of a big file\n" * 50_000, call_id="big")
    before = session.view.carried
    session.settle("big", "[cleared]\n")
    assert session.view.carried == before - 21 * 50_000 + 10
    session.compacted()
    assert session.view.carried == 0


def test_all_that_one_reply_leaves_out_counts_together() -> None:
    session, apart = Session("/w"), Session("/w")
    for one in (session, apart):
        one.observe("sed -n '1,5p' f", text(1, 5))
        one.observe("sed -n '20,24p' f", text(20, 24))
    assert len(session.markers_in(session.observe("cat f", text()).text)) == 2
    assert apart.observe("sed -n '1,10p' f", text(1, 10)).reason.value == "not_worth"


@pytest.mark.parametrize("given", [-0.1, float("nan")])
def test_a_least_worth_that_says_nothing_is_refused(given: float) -> None:
    with pytest.raises(UsageError, match="min_worth"):
        Policy(min_worth=given)


WRITE = f"cat > f <<'EOF'\n{text(1, 40)}EOF\n"


@pytest.mark.parametrize(("lines", "said"), [(40, "covered"), (6, "not_worth")])
def test_lines_of_the_agents_own_edit_must_be_worth_more(lines: int, said: str) -> None:
    """One agent in five asks for them again: six lines are left out only where a read showed them."""
    edited, read = Session("/w"), Session("/w")
    edited.observe(WRITE, "")
    read.observe("cat f", text(1, 40))
    command, output = f"sed -n '1,{lines}p' f", text(1, lines)
    assert read.observe(command, output).reason.value == "covered"
    assert edited.observe(command, output).reason.value == said


def test_where_some_lines_stand_in_an_edit_the_others_are_left_out_alone() -> None:
    session = Session("/w")
    session.observe("cat big", "a line of a big file\n" * 3_000)
    session.observe(f"cat > f <<'EOF'\n{text(1, 8)}EOF\n", "")
    session.observe("cat g", text(1, 12, of="row"), call_id="g")
    reply = session.observe("cat g h f", text(1, 9, of="row") + text(1, 3, of="new") + text(1, 5))
    assert [omitted.sources for omitted, _, _ in reply.omissions()] == [("g",)]
    assert text(1, 5) in reply.text


@pytest.mark.parametrize("name", ["build.log", "/tmp/x/tasks/b1.output", "nohup.out"])
def test_what_is_polled_is_shown(name: str) -> None:
    session = Session("/w")
    for command in (f"cat {name}", f"tail -40 {name}"):
        assert session.observe(f"cat {name}", text()).text == text()
        reply = session.observe(command, text())
        assert (reply.text, reply.reason.value) == (text(), "polled")
