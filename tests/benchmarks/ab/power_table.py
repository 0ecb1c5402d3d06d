"""How many instances an experiment needs: for tasks exact, for costs by the spread that a pilot found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

from .paired import needed, power

DISCORDANCES = (0.05, 0.10, 0.15, 0.20)
MARGINS = (1.0, 2.0, 3.0, 5.0)  # points
SPREADS = (0.5, 1.0, 1.5, 2.0)
SAVINGS = (0.02, 0.05, 0.1, 0.2)
WANTED = 0.8  # the power that most plans ask for
ALPHA = 0.025


def cost_power(count: int, spread: float, saving: float, alpha: float) -> float:
    """The probability that so many instances show an arm to be cheaper that saves this share of a solved task's cost.
    `spread`: see `Pilot`."""
    far = -math.log1p(-saving) * math.sqrt(count) / spread
    return NormalDist().cdf(far - NormalDist().inv_cdf(1 - alpha))


def cost_needed(spread: float, saving: float, alpha: float, wanted: float = WANTED) -> int:
    """How many instances have that power."""
    z = NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf(wanted)
    return math.ceil((spread * z / -math.log1p(-saving)) ** 2)


def power_tables(count: int = 500, alpha: float = ALPHA) -> Iterator[str]:
    """Two Markdown tables: the power of so many instances, and how many it takes, for costs and for tasks."""
    yield from _table(
        "spread of costs",
        [(f"{spread:g}", spread) for spread in SPREADS],
        [(f"{100 * saving:g} % saved", saving) for saving in SAVINGS],
        lambda spread, saving: (cost_power(count, spread, saving, alpha), cost_needed(spread, saving, alpha)),
    )
    yield ""
    yield from _table(
        "pairs that differ",
        [(f"{100 * apart:g} %", apart) for apart in DISCORDANCES],
        [(f"{margin:g} point{'s' if margin > 1 else ''}", margin / 100) for margin in MARGINS],
        lambda apart, margin: (power(count, apart, margin, alpha), needed(apart, margin, alpha, WANTED)),
    )


def _table(
    head: str,
    rows: Sequence[tuple[str, float]],
    columns: Sequence[tuple[str, float]],
    find: Callable[[float, float], tuple[float, int]],
) -> Iterator[str]:
    yield f"| {head} | " + " | ".join(name for name, _ in columns) + " |"
    yield "| --- " * (1 + len(columns)) + "|"
    for name, row in rows:
        found = [find(row, column) for _, column in columns]
        yield f"| {name} | " + " | ".join(f"{100 * share:.0f} %, {count:,}" for share, count in found) + " |"
