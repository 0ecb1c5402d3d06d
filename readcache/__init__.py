"""A tool-layer read cache for coding agents.

    from readcache import Session
    session = Session(root="/repo")
    print(session.run("cat src/app.py").text)

Bytes are left out of a reply only if the reader was shown those very bytes, can still see them, and is told where.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from readcache.policy import Budget, Head, HeadTail, Insist, Mode, Policy
    from readcache.reply import Omitted, Outcome, Reason, Reply, Shown
    from readcache.session import Session

__all__ = [
    "Budget",
    "Head",
    "HeadTail",
    "Insist",
    "Mode",
    "Omitted",
    "Outcome",
    "Policy",
    "Reason",
    "Reply",
    "Session",
    "Shown",
]
__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(("Budget", "Head", "HeadTail", "Insist", "Mode", "Policy"), "policy"),
    **dict.fromkeys(("Omitted", "Outcome", "Reason", "Reply", "Shown"), "reply"),
    "Session": "session",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: the command line starts without most of them (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
