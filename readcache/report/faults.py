"""Faults: markers whose bytes the reader requested again within a few calls, while it could see them. A fold of the
log.

    cat app.py                      ->  [FILE_UNCHANGED …: app.py lines 1-80, …]
    at most nine other calls
    head -n 60 app.py               ->  a fault of that marker, unless app.py was written or its lines were removed

An immediate reread (see `rereads`) is a result that is requested again within four calls. A fault is one marker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from readcache.core.model.events import Account, Amended, Delivered, Event, MarkerRecord, Moment
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.rereads import Lines, asks_again, comes_after, lines_of
from readcache.core.model.unconfirmed import lacks_text
from readcache.core.model.view import View

WITHIN = 10  # calls after the marker's call


class Faults:
    """The faults of one reader. `view`: the reader's view, which the caller keeps up to date."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._recent: deque[tuple[Delivered, Account]] = deque(maxlen=WITHIN)  # answers with omissions
        self._found: set[tuple[int, str | None, int]] = set()  # call, path and first line of a marker

    def take(self, event: Event) -> list[int]:
        """Return for each new fault the number of the marker's call. The view must not contain the event yet."""
        if isinstance(event, Delivered) and event.account is not None:
            found = [*self._find(event.when, event.account, event)]
            if event.account.outcome is not Outcome.FULL:
                self._recent.append((event, event.account))
            return found
        if isinstance(event, Amended):  # the lines of an answer that was logged without its text
            late = [text.event for text in self._view.of_call(event.call_id) if lacks_text(text.event)]
            return [number for one in late if one.account for number in self._find(one.when, one.account, event)]
        return []

    def _find(self, when: Moment, account: Account, answer: Delivered | Amended) -> Iterator[int]:
        recent = [one for one in self._recent if comes_after(when, one[0].when.call, one[0].when.batch, WITHIN)]
        asked = lines_of(answer, shown=True) if recent else {}
        for earlier, omitted in recent:
            number = earlier.when.call
            is_repeat = account.reason is Reason.INSISTED and account.request == omitted.request
            for marker in self._visible_markers(earlier):
                name = number, marker.path, marker.start
                if name not in self._found and (is_repeat or asks_again(_lines(marker), asked)):
                    self._found.add(name)
                    yield number

    def _visible_markers(self, answer: Delivered) -> Iterator[MarkerRecord]:
        """Yield the markers of an answer whose lines the reader can see, if it knows no newer version of them."""
        view = self._view
        for text in view.of_call(answer.call_id):
            for marker in text.event.markers if text.call == answer.when.call else ():
                is_visible = marker.line >= 0 and marker.sources and all(map(view.is_visible, marker.sources))
                if is_visible and not (marker.path and view.was_written_since(marker.path, text)):
                    yield marker


def _lines(marker: MarkerRecord) -> Lines:
    return {} if marker.path is None else {marker.path: ((marker.start, marker.end),)}
