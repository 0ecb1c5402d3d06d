"""Deliveries that may be sources for one call. Their bytes do not matter here."""

from __future__ import annotations

from readcache.core.model.call import Call
from readcache.core.model.key_view import Delivery
from readcache.core.model.policy import Policy
from readcache.core.model.view import View


class Sources:
    """The sources of one call.

    `same_batch`: True if a delivery was refused because it may appear after this call. It belongs to the call's own
    batch, or it was logged after the call had started.
    """

    __slots__ = ("_call", "_oldest", "same_batch")

    def __init__(self, view: View, call: Call, policy: Policy) -> None:
        self._call = call
        self._oldest = -1 if policy.horizon_tokens is None else view.calls.tokens - policy.horizon_tokens
        self.same_batch = False

    def allow(self, delivery: Delivery) -> bool:
        """Return True if a marker may name this delivery as its source.

        The delivery must come from another call, be inside `Policy.horizon_tokens`, and be certain to appear before
        this call.
        """
        event = delivery.event
        if event.call_id == self._call.call_id or event.when.tokens < self._oldest:
            return False
        at_once = event.when.batch != "" and event.when.batch == self._call.batch
        if at_once or 0 <= self._call.started < event.when.call:
            self.same_batch = True
            return False
        return True
