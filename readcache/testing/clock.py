"""A clock that stands still until it is told to go on."""

from __future__ import annotations


class FakeClock:
    """For `Session(clock=…)`: seconds since the epoch, `now` until `tick` is called."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def tick(self, seconds: float = 1.0) -> None:
        """Lets time pass; a negative number sets the clock back, as time servers do."""
        self.now += seconds
