"""Prune, clear and compact message lists.

from readcache.context import Compactor, clear, mend_and_clear, prune
"""

from __future__ import annotations

from readcache.context.clearing import clear, mend_and_clear
from readcache.context.compaction import How
from readcache.context.compactor import Compactor, Report
from readcache.context.formed import is_overflow
from readcache.context.pruner import prune
from readcache.context.savings import PruneReport, prune_report
from readcache.context.summary import SUMMARY_PROMPT, serialize_transcript, summary_request

__all__ = [
    "SUMMARY_PROMPT",
    "Compactor",
    "How",
    "PruneReport",
    "Report",
    "clear",
    "is_overflow",
    "mend_and_clear",
    "prune",
    "prune_report",
    "serialize_transcript",
    "summary_request",
]
