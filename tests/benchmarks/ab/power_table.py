"""How many instances an experiment needs: power, exact, of one run of every instance in each arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .paired import needed, power

DISCORDANCES = (0.05, 0.10, 0.15, 0.20)
MARGINS = (2.0, 3.0, 4.0, 5.0)  # points
WANTED = 0.8  # the power that most plans ask for
ALPHA = 0.025


def power_table(count: int = 500, margins: Sequence[float] = MARGINS, alpha: float = ALPHA) -> Iterator[str]:
    """A Markdown table: for each share of pairs that differ, the power of so many instances and how many it takes."""
    yield "| pairs that differ | " + " | ".join(f"{margin:g} points" for margin in margins) + " |"
    yield "| --- " * (1 + len(margins)) + "|"
    for apart in DISCORDANCES:
        cells = []
        for margin in margins:
            found = power(count, apart, margin / 100, alpha)
            cells.append(f"{100 * found:.0f} %, {needed(apart, margin / 100, alpha, WANTED):,}")
        yield f"| {100 * apart:.0f} % | " + " | ".join(cells) + " |"
