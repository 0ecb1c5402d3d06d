"""Repeated requests: a reader that repeats a request right after an omission gets the whole output."""

from __future__ import annotations

from readcache.core.model.call import Call
from readcache.core.model.view import View

# A repeat is a retry if at most this many other calls came since the omission. Other omissions and their repeats do not
# count. A model may look around (`pwd`, `ls`) before it repeats a request, or may repeat a whole batch of requests.
RETRY_WITHIN = 2
# Omissions of one request, with any number of calls between them: a weak model may loop over the same few requests.
# Chosen by replay.
MOST_OMISSIONS_IN_A_ROW = 2


def is_retry(view: View, call: Call) -> bool:
    """Return True if this request repeats an omitted one right after it, or if it got omissions too often in a row."""
    if view.calls.omissions_of(call.request) >= MOST_OMISSIONS_IN_A_ROW:
        return True
    others = view.calls.since_omission(call.request, view.calls.number_of(call.call_id))
    return others is not None and others <= RETRY_WITHIN
