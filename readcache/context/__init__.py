"""Message lists: what compactors work on.

from readcache.context import Compactor, prune
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from readcache import lazy_names

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

__getattr__ = lazy_names(
    {
        "readcache.context.compaction": "How",
        "readcache.context.compactor": "Compactor Report",
        "readcache.context.history": "History",
        "readcache.context.prompt": "SUMMARY_PROMPT summary_request",
        "readcache.context.pruner": "prune",
        "readcache.messages.messages": "Kind Message Part normalise",
        "readcache.messages.structure": "Cause Fault cut_points faults find_cut repair",
        "readcache.messages.transcript": "serialize_transcript",
        "readcache.model.history_events": "CondensationRequested Condensed Item Replaced",
    },
    globals(),
)
