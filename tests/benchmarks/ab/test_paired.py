"""The statistics of paired yes-or-no results, beside published numbers and beside simulation."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ab.paired import Pairs, count_pairs, design_effect, interval, is_not_inferior, needed, power, score

Z = NormalDist().inv_cdf(0.975)
counts = st.integers(0, 60)


def test_the_interval_is_the_published_one() -> None:
    # Fagerland, Lydersen and Laake, Statistical Analysis of Contingency Tables (2017), chapter 8: complete response
    # before and after consolidation therapy (Cavo et al. 2012), as in the tests of their R package contingencytables.
    pairs = Pairs(both=59, only_arm=6, only_control=16, neither=80)
    assert pairs.difference == pytest.approx(-0.0621, abs=5e-5)
    assert interval(pairs, 0.025) == pytest.approx((-0.1240, -0.0054), abs=5e-5)


def test_where_no_pair_differs_the_interval_is_as_wide_as_the_number_of_pairs_allows() -> None:
    low, high = interval(Pairs(30, 0, 0, 14), 0.025)
    assert (-low, high) == pytest.approx((Z**2 / (44 + Z**2),) * 2, abs=1e-9)


def test_the_score_of_no_difference_is_mcnemars() -> None:
    assert score(Pairs(50, 30, 12, 8), 0.0) == pytest.approx((30 - 12) / math.sqrt(42))


@given(counts, counts, counts, counts)
def test_the_interval_has_the_difference_in_it_and_turns_with_the_arms(a: int, b: int, c: int, d: int) -> None:
    if a + b + c + d == 0:
        return
    low, high = interval(Pairs(a, b, c, d), 0.025)
    assert -1 <= low <= (b - c) / (a + b + c + d) <= high <= 1
    assert interval(Pairs(a, c, b, d), 0.025) == pytest.approx((-high, -low), abs=1e-9)


@given(counts, counts, st.integers(61, 400), st.floats(0.01, 0.3))
def test_the_verdict_and_the_interval_agree(b: int, c: int, rest: int, margin: float) -> None:
    pairs = Pairs(rest, b, c, 0)
    low = interval(pairs, 0.025)[0]
    if abs(low + margin) > 1e-6:
        assert is_not_inferior(pairs, margin, 0.025) == (low > -margin)


def test_the_level_holds_where_the_arm_is_worse_by_just_the_margin() -> None:
    for count in (50, 200, 500, 2000):
        assert 0.01 < power(count, 0.10, 0.05, 0.025, difference=-0.05) < 0.03, count


def test_the_power_is_what_a_simulation_finds() -> None:
    rng, shown, rounds = random.Random(1), 0, 4000
    for _ in range(rounds):
        apart = sum(rng.random() < 0.10 for _ in range(300))
        more = sum(rng.random() < 0.5 for _ in range(apart))
        shown += is_not_inferior(Pairs(0, more, apart - more, 300 - apart), 0.05, 0.025)
    assert power(300, 0.10, 0.05, 0.025) == pytest.approx(shown / rounds, abs=0.025)


def test_the_number_needed_is_near_the_formula_of_the_textbooks() -> None:
    by_formula = 0.10 * ((Z + NormalDist().inv_cdf(0.8)) / 0.04) ** 2  # Connor 1987, with no true difference
    assert needed(0.10, 0.04, 0.025, 0.8) == pytest.approx(by_formula, rel=0.1)


def test_pairs_are_counted_by_who_solved() -> None:
    clusters = [[(True, True)], [(True, False)], [(False, True)], [(False, True)], [(False, False)]]
    assert count_pairs(clusters) == Pairs(both=1, only_arm=2, only_control=1, neither=1)
    assert design_effect(clusters) == 1.0


def test_repetitions_that_always_agree_count_once() -> None:
    rng = random.Random(2)
    once = [[(rng.random() < 0.6, rng.random() < 0.6)] for _ in range(200)]
    thrice = [cluster * 3 for cluster in once]
    assert design_effect(thrice) == pytest.approx(3.0, rel=0.01)
    effect = design_effect(thrice)
    assert interval(count_pairs(thrice).over(effect), 0.025) == pytest.approx(
        interval(count_pairs(once), 0.025), abs=0.001
    )


def test_repetitions_that_have_nothing_to_do_with_each_other_all_count() -> None:
    rng = random.Random(3)
    clusters = [[(rng.random() < 0.6, rng.random() < 0.6) for _ in range(3)] for _ in range(2000)]
    assert design_effect(clusters) == pytest.approx(1.0, abs=0.1)


def test_where_nothing_differs_repetitions_add_nothing() -> None:
    assert design_effect([[(True, True)] * 3] * 10) == 3.0
