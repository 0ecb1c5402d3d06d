"""Where a process goes on with the session of another one that did not end in order.

What was logged last may never have reached the conversation: the process may have been killed between the two. It is
shown again, which costs one answer in full.
"""

from __future__ import annotations

from readcache.model.events import Delivered
from readcache.model.view import View


def unconfirmed(view: View) -> frozenset[str]:
    """The ids of the calls whose results may not be in the conversation: the last one, and those that ran at the same
    time."""
    calls = view.calls
    if calls.closed == calls.number:
        return frozenset()
    newest = [d.event.when for d in view.deliveries if d.call == calls.number]
    batches = {when.batch for when in newest if when.batch}
    sure = min((when.started for when in newest if when.started >= 0), default=calls.number - 1)
    return frozenset(
        d.event.call_id
        for d in view.deliveries
        if (d.call > sure or d.event.when.batch in batches) and not _was_shown_first(d.event)
    )


def _was_shown_first(event: Delivered) -> bool:
    """True for what was printed before it was logged, as `readcache run` does."""
    return event.account is not None and event.account.shown_chars is not None
