"""Find the results in doubt when a process continues the session of another process that did not end in order.

The results logged last may not have reached the conversation, because the process may have been killed in between. They
are shown again, which costs one answer in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from readcache.core.model.events import Amended, Delivered, Event, Origin
from readcache.core.model.unconfirmed import with_amended
from readcache.core.model.view import View


def unconfirmed(view: View) -> frozenset[str]:
    """Return the IDs of the calls whose results may not be in the conversation: the last call, and the calls that ran
    at the same time."""
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
    """Return the newest results of these calls in this reader's log, by call ID. The log is read only if there are any
    calls."""
    results: dict[str, Delivered] = {}
    for event in log() if call_ids else ():
        if isinstance(event, Delivered) and event.call_id in call_ids and event.origin is Origin.RESULT:
            results[event.call_id] = event
        elif isinstance(event, Amended) and event.call_id in results and event.origin is Origin.RESULT:
            results[event.call_id] = with_amended(results[event.call_id], event)
    return results


def _was_shown_first(event: Delivered) -> bool:
    """Return True for a result that was printed before it was logged, as by `readcache run`."""
    return event.account is not None and event.account.shown_chars is not None
