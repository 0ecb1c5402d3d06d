"""How much of tool results was in the conversation after each step, and what kept it from being more, in characters."""

from __future__ import annotations

from typing import NamedTuple

from readcache.model.events import Compacted, Delivered, Event, Forgot, Origin, Rewound, Settled
from readcache.model.view import View
from readcache.report.page.sizes import left_out_of

_TAKES_AWAY = (Compacted, Forgot, Rewound, Settled)


class Held(NamedTuple):
    """Characters after one step."""

    in_view: int = 0
    back: int = 0  # of these: restored, or read again soon after they had left
    spared: int = 0  # left out of results that are still there, and not asked for again at once


class Context:
    """Follows one reader's view."""

    def __init__(self) -> None:
        self._back: dict[str, int] = {}
        self._spared: dict[str, tuple[int, int]] = {}  # call id -> (number of the call, characters)
        self._rereads = self._bounces = 0

    def after(self, view: View, event: Event) -> Held:
        """What is held after this event, which the view has taken in."""
        rereads, bounced = view.calls.counts["reread_calls"], view.calls.bounced
        if isinstance(event, Delivered):
            if event.origin is Origin.RESTORED or rereads > self._rereads:
                self._back[event.call_id] = len(event.text)
            if (left := left_out_of(event)) > 0:
                self._spared[event.call_id] = event.when.call, left
        if isinstance(event, _TAKES_AWAY) or len(bounced) > self._bounces:
            self._back = {name: chars for name, chars in self._back.items() if view.is_visible(name)}
            self._spared = {
                name: one for name, one in self._spared.items() if view.is_visible(name) and one[0] not in bounced
            }
        self._rereads, self._bounces = rereads, len(bounced)
        back = min(view.carried, sum(self._back.values()))
        return Held(view.carried, back, sum(chars for _, chars in self._spared.values()))
