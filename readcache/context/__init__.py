"""Message lists: what compactors work on.

from readcache.context import Compactor, clear, prune
"""

from __future__ import annotations

from readcache.context.api import is_overflow
from readcache.context.clearing import clear
from readcache.context.compaction import How
from readcache.context.compactor import Compactor, Report
from readcache.context.history import History
from readcache.context.prompt import SUMMARY_PROMPT, summary_request
from readcache.context.pruner import prune
from readcache.messages.messages import Kind, Message, Part, normalise
from readcache.messages.structure import cut_points, repair
from readcache.messages.transcript import serialize_transcript
from readcache.model.history_events import CondensationRequested, Condensed, Item, Replaced

__all__ = [
    "SUMMARY_PROMPT",
    "Compactor",
    "CondensationRequested",
    "Condensed",
    "History",
    "How",
    "Item",
    "Kind",
    "Message",
    "Part",
    "Replaced",
    "Report",
    "clear",
    "cut_points",
    "is_overflow",
    "normalise",
    "prune",
    "repair",
    "serialize_transcript",
    "summary_request",
]
