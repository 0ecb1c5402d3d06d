"""Call IDs, and which of them do not name one call. Some models number their calls from 0 in each response."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from readcache.core.model.calls import Calls
from readcache.core.model.events import Amended, Compacted, Delivered, Event, Forgot, Wrote
from readcache.core.model.key_view import Delivery


class CallIds:
    """A fold of the log, next to the view. It follows which calls each ID has named."""

    def __init__(self) -> None:
        self.reused: set[str] = set()  # IDs of more than one call: such an ID does not say which call is meant
        self.doubted: set[str] = set()  # calls that are not visible but may still be in the conversation
        self.marked = 0  # number of texts with markers in the log so far
        self._numbers: dict[str, int] = {}  # call ID -> number of the newest call with this ID

    def name(self, event: Delivered | Wrote, texts: Sequence[Delivery], calls: Calls) -> tuple[bool, list[Delivered]]:
        """Record an event of a call. `texts`: the visible texts under its ID. Return (is_shared, again): `is_shared` is
        True if `texts` contains a text of another call, and `again` lists the earlier answers of this call."""
        number = event.call if isinstance(event, Wrote) else event.when.call
        again = [text.event for text in texts if calls.repeats(text.event, event)]
        is_shared = not isinstance(event, Wrote) and any(
            text.call != number or text.event.label != event.label for text in texts
        )
        if not again and (is_shared or self._numbers.get(event.call_id, number) != number):
            self.reused.add(event.call_id)
        self._numbers[event.call_id] = number
        return is_shared, again

    def known(self, is_visible: Callable[[str], bool]) -> frozenset[str]:
        """Return the IDs that name, or may name, a call that is not visible: IDs of more than one call, and IDs of
        calls that are no longer in the conversation."""
        return frozenset(self.reused.union(call_id for call_id in self._numbers if not is_visible(call_id)))

    def apply(self, event: Event) -> None:
        """Record an event: which calls are in doubt, and whether a text has markers."""
        if isinstance(event, (Delivered, Amended)):
            self.marked += bool(event.markers)
        if isinstance(event, Delivered):
            self.doubted.discard(event.call_id)
        elif isinstance(event, Forgot):
            for call_id in event.call_ids:  # if the ID comes again, it names another call, even if the log begins here
                self._numbers.setdefault(call_id, 0)
            self.doubted = (self.doubted | event.call_ids) if event.doubted else (self.doubted - event.call_ids)
        elif isinstance(event, Compacted):
            self.doubted.clear()
