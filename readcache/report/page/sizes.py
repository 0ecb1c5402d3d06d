"""How much of a call's output was shown, and how much left out, in characters."""

from __future__ import annotations

from readcache.model.events import Delivered
from readcache.model.reply import Outcome


def shown_of(event: Delivered) -> int:
    """Characters that it put before the reader."""
    known = event.account.shown_chars if event.account is not None else None
    return len(event.text) if known is None else known


def left_out_of(event: Delivered) -> int:
    """Characters that were left out, net of markers; they may be less than none."""
    if event.account is None or event.account.outcome is Outcome.FULL:
        return 0
    return event.account.output_chars - shown_of(event)
