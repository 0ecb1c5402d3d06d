"""The budget: what the whole experiment may use, and what is set aside for the runs under way.

A run begins only when its own limits still fit; a block, when those of all its runs do. mini-swe-agent looks at the
limits of a run before each call of the model, so that a run can exceed them by one call.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import Any

from .plan import Limits


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used."""

    money: float = 0.0
    tokens: int = 0
    steps: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Spent)))


class Budget:
    """Of one experiment; any thread may ask."""

    def __init__(self, whole: Limits, run: Limits, spent: Spent) -> None:
        self._whole, self._run, self._lock = whole, run, threading.Lock()
        self.spent = spent
        self._set_aside = 0  # runs

    def set_aside(self, runs: int) -> str:
        """Keeps what so many runs may use at most. What would be exceeded, and then nothing is kept; "" when they
        fit."""
        with self._lock:
            for each in fields(Spent):
                limit: Any = getattr(self._whole, each.name)
                most = getattr(self.spent, each.name) + (self._set_aside + runs) * getattr(self._run, each.name)
                if limit and most > limit:
                    used = f"{getattr(self.spent, each.name):,.6g} are used"
                    return f"{each.name}: {used}, {runs} more runs may need {most:,.6g}, the limit is {limit:,.6g}"
            self._set_aside += runs
            return ""

    def settle(self, spent: Spent) -> None:
        """A run that something was set aside for is over."""
        with self._lock:
            self._set_aside -= 1
            self.spent += spent

    def release(self, runs: int) -> None:
        """So many runs that something was set aside for do not take place."""
        with self._lock:
            self._set_aside -= runs
