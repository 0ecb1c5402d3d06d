"""The bootstrap of ratios."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import NormalDist

import pytest

from ab.bootstrap import intervals, resampled


def mean_ratio(sums: Sequence[float]) -> float | None:
    return sums[1] / sums[0] if sums[0] else None


def test_a_ratio_that_is_the_same_for_all_has_no_width() -> None:
    rows = [[float(n), 0.8 * n] for n in range(1, 30)]
    found = intervals(resampled(rows, 200, seed=1), {"ratio": mean_ratio}, 0.025)["ratio"]
    assert found == pytest.approx((0.8, 0.8))


def test_the_interval_of_a_mean_is_near_the_one_of_the_normal_distribution() -> None:
    rng = random.Random(4)
    rows = [[1.0, rng.gauss(10, 2)] for _ in range(400)]
    values = [row[1] for row in rows]
    mean = sum(values) / 400
    error = (sum((value - mean) ** 2 for value in values) / 400) ** 0.5 / 20
    found = intervals(resampled(rows, 4000, seed=1), {"mean": mean_ratio}, 0.025)["mean"]
    z = NormalDist().inv_cdf(0.975)
    assert found == pytest.approx((mean - z * error, mean + z * error), abs=0.02)


def test_one_seed_gives_one_interval() -> None:
    rows = [[1.0, float(n)] for n in range(20)]
    one, same, other = (resampled(rows, 50, seed) for seed in (1, 1, 2))
    assert one == same != other


def test_what_often_has_no_value_has_no_interval() -> None:
    rows = [[1.0, 5.0], [0.0, 5.0], [0.0, 5.0]]
    assert intervals(resampled(rows, 500, seed=1), {"ratio": mean_ratio}, 0.025) == {"ratio": None}
    assert intervals([], {"ratio": mean_ratio}, 0.025) == {"ratio": None}
