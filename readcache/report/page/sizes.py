"""How much of a call's output was shown, and how much left out, in characters."""

from __future__ import annotations

from readcache.model.reply import Outcome
from readcache.report.page.lanes import Step


def chars_shown(step: Step) -> int:
    """Characters that it put before the reader: of the result, or of a restored section."""
    event = step.result
    if event is None:
        return sum(len(text.event.text) for text in step.texts if step.of is None)
    known = event.account.shown_chars if event.account is not None else None
    return len(event.text) if known is None else known


def chars_left_out(step: Step) -> int:
    """Characters that were left out, net of markers; they may be less than none."""
    event = step.result
    if event is None or event.account is None or event.account.outcome is Outcome.FULL:
        return 0
    return event.account.output_chars - chars_shown(step)
