"""The budget: a run begins only where its own limits still fit."""

from __future__ import annotations

from ab.budget import Budget, Spent
from ab.plan import Limits


def test_runs_fit_until_their_limits_would_exceed_the_whole() -> None:
    budget = Budget(Limits(money=10.0), Limits(money=3.0), Spent())
    assert budget.set_aside(3) == ""
    assert budget.set_aside(1).startswith("money: 0 are used, 1 more runs may need 12")


def test_what_a_run_did_not_use_is_there_for_others() -> None:
    budget = Budget(Limits(money=10.0), Limits(money=3.0), Spent())
    budget.set_aside(3)
    budget.settle(Spent(money=1.0))
    assert budget.set_aside(1) == ""
    assert budget.spent == Spent(money=1.0)


def test_what_was_set_aside_and_did_not_take_place_is_given_back() -> None:
    budget = Budget(Limits(steps=100), Limits(steps=50), Spent())
    budget.set_aside(2)
    assert budget.set_aside(1)
    budget.release(1)
    assert budget.set_aside(1) == ""


def test_what_was_used_before_counts() -> None:
    assert Budget(Limits(tokens=100), Limits(tokens=50), Spent(tokens=51)).set_aside(1).startswith("tokens: 51")


def test_each_kind_of_limit_holds_by_itself_and_none_means_none() -> None:
    run = Limits(money=1.0, tokens=10, steps=5)
    for whole in (Limits(money=1.5), Limits(tokens=15), Limits(steps=8)):
        budget = Budget(whole, run, Spent())
        assert budget.set_aside(1) == ""
        assert budget.set_aside(1)
    assert Budget(Limits(), run, Spent(money=1e9)).set_aside(1000) == ""
