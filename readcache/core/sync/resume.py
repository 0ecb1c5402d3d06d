"""Where a process goes on with the session of another one that did not end in order.

What was logged last may never have reached the conversation: the process may have been killed between the two. It is
shown again, which costs one answer in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from readcache.core.model.events import Amended, Delivered, Event, Origin
from readcache.core.model.unconfirmed import with_amended
from readcache.core.model.view import View


def unconfirmed(view: View) -> frozenset[str]:
    """The ids of the calls whose results may not be in the conversation: the last one, and those that ran at the same
    time."""
    calls = view.calls
    if calls.closed == calls.number:
        return frozenset()
    newest = [d.event.when for d in view.deliveries if d.call == calls.number]
    batches = {when.batch for when in newest if when.batch}
    last_certain = min((when.started for when in newest if when.started >= 0), default=calls.number - 1)
    return frozenset(
        d.event.call_id
        for d in view.deliveries
        if (d.call > last_certain or d.event.when.batch in batches) and not _was_shown_first(d.event)
    )


def results_in_log(call_ids: Set[str], log: Callable[[], Iterable[Event]]) -> dict[str, Delivered]:
    """Return the newest results of these calls, by call id, as this reader's log has them. It is read only if there are
    any."""
    results: dict[str, Delivered] = {}
    for event in log() if call_ids else ():
        if isinstance(event, Delivered) and event.call_id in call_ids and event.origin is Origin.RESULT:
            results[event.call_id] = event
        elif isinstance(event, Amended) and event.call_id in results and event.origin is Origin.RESULT:
            results[event.call_id] = with_amended(results[event.call_id], event)
    return results


def _was_shown_first(event: Delivered) -> bool:
    """True for what was printed before it was logged, as `readcache run` does."""
    return event.account is not None and event.account.shown_chars is not None
