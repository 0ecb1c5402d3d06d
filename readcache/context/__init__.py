"""Message lists: what compactors work on.

    from readcache.context import Compactor, prune

A name is imported when it is first used (PEP 562), so that nobody pays for what is not called.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from readcache.context.compaction import How
    from readcache.context.compactor import Compactor, Report
    from readcache.context.history import History
    from readcache.context.prompt import SUMMARY_PROMPT, summary_request
    from readcache.context.pruner import prune
    from readcache.messages.messages import Kind, Message, Part, normalise
    from readcache.messages.structure import Cause, Fault, cut_points, faults, find_cut, repair
    from readcache.messages.transcript import serialize_transcript
    from readcache.model.history_events import CondensationRequested, Condensed, Item, Replaced

__all__ = [
    "SUMMARY_PROMPT",
    "Cause",
    "Compactor",
    "CondensationRequested",
    "Condensed",
    "Fault",
    "History",
    "How",
    "Item",
    "Kind",
    "Message",
    "Part",
    "Replaced",
    "Report",
    "cut_points",
    "faults",
    "find_cut",
    "normalise",
    "prune",
    "repair",
    "serialize_transcript",
    "summary_request",
]

_HOMES = {
    **dict.fromkeys(("Compactor", "Report"), "readcache.context.compactor"),
    "How": "readcache.context.compaction",
    **dict.fromkeys(("Kind", "Message", "Part", "normalise"), "readcache.messages.messages"),
    **dict.fromkeys(("SUMMARY_PROMPT", "summary_request"), "readcache.context.prompt"),
    **dict.fromkeys(("CondensationRequested", "Condensed", "Item", "Replaced"), "readcache.model.history_events"),
    **dict.fromkeys(("Cause", "Fault", "cut_points", "faults", "find_cut", "repair"), "readcache.messages.structure"),
    "History": "readcache.context.history",
    "prune": "readcache.context.pruner",
    "serialize_transcript": "readcache.messages.transcript",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
