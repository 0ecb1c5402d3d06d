"""Helpers for the tests of harnesses: assertions about omissions and their reasons, and a clock.

    from readcache.testing import assert_omitted, assert_shown

The fixtures `readcache_session`, `readcache_policy` and `readcache_clock` come with the pytest plugin
(`readcache.testing.plugin`), which is active if readcache is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from readcache import lazy_names

if TYPE_CHECKING:
    from readcache.core.model.spec.world import World
    from readcache.testing.replies import assert_omitted, assert_shown, reconstruct

__all__ = ["FakeClock", "World", "assert_omitted", "assert_shown", "reconstruct"]

__getattr__ = lazy_names(  # pytest imports this package whenever it starts
    {
        "readcache.core.model.spec.world": "World",
        "readcache.testing.replies": "assert_omitted assert_shown reconstruct",
    },
    globals(),
)


class FakeClock:
    """A stopped clock for `Session(clock=…)`. It returns `now`, in seconds since the epoch, until `tick` is called."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def tick(self, seconds: float = 1.0) -> None:
        """Advance the clock. A negative number of seconds sets it back, as time servers do."""
        self.now += seconds
