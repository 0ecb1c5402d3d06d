"""For the tests of harnesses: what a reply left out and why, a clock, a bash without processes.

    from readcache.testing import ScriptedBash, assert_omitted

The fixtures `readcache_session`, `readcache_policy` and `readcache_clock` come with the pytest plugin
(`readcache.testing.plugin`), which is active wherever readcache is installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from readcache.testing.bash import BashCall, ScriptedBash
    from readcache.testing.clock import FakeClock
    from readcache.testing.replies import assert_omitted, assert_shown, reconstruct

__all__ = ["BashCall", "FakeClock", "ScriptedBash", "assert_omitted", "assert_shown", "reconstruct"]

_HOMES = {
    **dict.fromkeys(("BashCall", "ScriptedBash"), "bash"),
    "FakeClock": "clock",
    **dict.fromkeys(("assert_omitted", "assert_shown", "reconstruct"), "replies"),
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: pytest imports this package at every start (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
