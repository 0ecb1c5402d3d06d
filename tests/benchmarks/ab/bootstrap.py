"""Bootstrap of ratios: instances are drawn with replacement, and with each all that all arms did on it.

The arms of one instance stay together, since that is what makes them comparable; so do its repetitions, which are not
independent. Percentile intervals (Efron and Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

Row = Sequence[float]  # of one instance: its sums, a column each
Interval = tuple[float, float] | None


def resampled(rows: Sequence[Row], resamples: int, seed: int) -> list[list[float]]:
    """The column sums of each resample."""
    rng = random.Random(f"bootstrap {seed}")
    return [[sum(column) for column in zip(*rng.choices(rows, k=len(rows)), strict=True)] for _ in range(resamples)]


def intervals(
    sums: Sequence[Sequence[float]], measures: Mapping[str, Callable[[Sequence[float]], float | None]], alpha: float
) -> dict[str, Interval]:
    """Of each measure of column sums the interval with `alpha` on each side. A measure is None where it has no value
    (no task solved); an interval is None where that is so in more than `alpha` of the resamples, since its end would
    then be unknown."""
    out: dict[str, Interval] = {}
    for name, measure in measures.items():
        found = sorted(value for each in sums if (value := measure(each)) is not None)
        if len(found) < (1 - alpha) * len(sums) or not found:
            out[name] = None
            continue
        out[name] = found[int(alpha * len(found))], found[min(int((1 - alpha) * len(found)), len(found) - 1)]
    return out
