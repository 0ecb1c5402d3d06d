"""Repeated requests: a reader that asks again right after an omission is shown all of it."""

from __future__ import annotations

from readcache.core.model.call import Call
from readcache.core.model.view import View

# A repeat counts as insisting when at most this many other calls came since the omission, not counting other omissions
# and their repeats: a model may look around (`pwd`, `ls`) before it asks again, or repeat a whole batch of requests.
RETRY_WITHIN = 2
# At any distance: a weak model may loop over the same few requests. Chosen by replay.
MOST_OMISSIONS_IN_A_ROW = 2


def is_retry(view: View, call: Call) -> bool:
    """True if this request repeats an omitted one right after it, or was answered by omissions too often."""
    if view.calls.omissions_of(call.request) >= MOST_OMISSIONS_IN_A_ROW:
        return True
    others = view.calls.since_omission(call.request, view.calls.number_of(call.call_id))
    return others is not None and others <= RETRY_WITHIN
