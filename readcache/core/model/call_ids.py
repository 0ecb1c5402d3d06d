"""What the ids of calls say, and what they cannot tell: some models count theirs from 0 in each response."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from readcache.core.model.calls import Calls
from readcache.core.model.events import Amended, Compacted, Delivered, Event, Forgot, Wrote
from readcache.core.model.key_view import Delivery


class CallIds:
    """A fold of the log beside the view's."""

    def __init__(self) -> None:
        self.reused: set[str] = set()  # ids that more than one call had: they say nothing of which one is meant
        self.doubted: set[str] = set()  # calls that are not visible, and may be in the conversation all the same
        self.marked = 0  # texts with markers that were folded so far
        self._numbers: dict[str, int] = {}  # call id -> number of the newest call that had it

    def name(self, event: Delivered | Wrote, texts: Sequence[Delivery], calls: Calls) -> tuple[bool, list[Delivered]]:
        """Take in an event of a call. `texts` are visible under its id. Return whether another call's are among them,
        and those that the same call had for an answer before."""
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
        """Return the ids that name, or may name, a call besides one that is visible: those that more than one call had,
        and those of calls that are gone."""
        return frozenset(self.reused.union(call_id for call_id in self._numbers if not is_visible(call_id)))

    def apply(self, event: Event) -> None:
        """Take in what any event says of the calls that are in doubt, and of markers."""
        if isinstance(event, (Delivered, Amended)):
            self.marked += bool(event.markers)
        if isinstance(event, Delivered):
            self.doubted.discard(event.call_id)
        elif isinstance(event, Forgot):
            for call_id in event.call_ids:  # one that comes again is another call's, also where a log begins with this
                self._numbers.setdefault(call_id, 0)
            self.doubted = (self.doubted | event.call_ids) if event.doubted else (self.doubted - event.call_ids)
        elif isinstance(event, Compacted):
            self.doubted.clear()
