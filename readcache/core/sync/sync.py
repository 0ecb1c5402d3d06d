"""Find the part of the view that is still in the message list, after any change to the list: compaction, pruning,
clearing, truncation, rewind, fork, edits. The list is the truth, and its history does not matter.

A text is searched for under its call ID. If the list has no IDs, or not this session's, the text is searched for by its
lines (see `search`). In a truncated text, the remaining lines keep their credit, and markers that are still true stay.
Only markers are rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Any

from readcache.core.judging.marker import may_contain
from readcache.core.messages.editing import TextKey
from readcache.core.messages.messages import Kind, visible_to_model
from readcache.core.model.call import MADE_UP_ID
from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Delivered, Event, Forgot, MarkerRecord, Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.text import is_blank, split_lines
from readcache.core.model.unconfirmed import confirmed, with_amended
from readcache.core.model.view import View
from readcache.core.sync.amend import amend, answer_shown
from readcache.core.sync.locate import body, extract_rest, locate, locate_stale, longest_run
from readcache.core.sync.repair import Remaining, repair_markers, stale_markers
from readcache.core.sync.rewrites import Edit, LoggedMarkers, Made, MarkerEdit, plan_edits, unescaped
from readcache.core.sync.search import Location, Search
from readcache.core.sync.texts import MessageText, MessageTexts

Log = Callable[[], Iterable[Event]]


@dataclass(frozen=True, slots=True)
class Synced:
    """The result of a sync. `by_call`: call ID (the list's own, if it has one) -> the whole new result; if the list has
    no ID, only the reply. `by_text_key`: key of a text in the list -> its new text. `events`: after them the view
    agrees with the list."""

    by_call: Mapping[str, str] = field(default_factory=dict)
    by_text_key: Mapping[TextKey, str] = field(default_factory=dict)
    events: tuple[Event, ...] = ()


class Reconciler:
    """The locations of a view's texts in a message list, kept from one sync to the next."""

    def __init__(self) -> None:
        self._list = MessageTexts()
        self._locations: dict[Delivery, Location] = {}
        self._has_ids = False  # a list has named a call of this session by its ID
        self._asked_log = False
        self._logged = LoggedMarkers()
        self._delivered: set[str] = set()  # calls whose replies with markers were in a list

    def reconcile(
        self,
        view: View,
        messages: Sequence[Mapping[str, Any]],
        *,
        tag: str,
        log: Log = tuple,
        gives_back: bool = True,
        batch: str = "",
    ) -> Synced:
        """Return the texts to put into the list, and the events that make the view agree with the list.

        The texts are for replies that stay and have markers for text that is gone. The harness's own words around a
        reply stay as they are. `gives_back`: a reply that no list has contained yet gets its lines back. If it is
        False, the model was shown every reply in this list, and a note says that the lines are gone. `batch`: the calls
        that are running now, whose results may not be in the list yet.

        The cost is a comparison for each unchanged message, and a check of each visible delivery. `log` is read only
        for markers in the list that are in no visible reply, and once for a list with IDs of no visible call.
        """
        self._list.update(visible_to_model(messages))
        visible = [
            d for d in _with_unconfirmed(view) if not batch or d.event.when.batch != batch or self._named(d.event)
        ]
        self._has_ids = self._has_ids or self._names_calls(visible, log)
        amended = self._locate_all(visible, view.ids.reused, tag)
        if view.waiting:  # an unconfirmed reply that is not in the list may still come
            visible = [d for d in visible if not d.event.unconfirmed or d in self._locations]
        if not gives_back:
            self._delivered.update(delivery.event.call_id for delivery in visible)
        edits, given_back = self._check_markers(view, visible, amended)
        for delivery in given_back:  # from now on its markers are in no reply
            self._leave(delivery)
            amended.pop(delivery, None)
        orphans = self._orphan_markers(view, amended, tag, log, gives_back)
        by_call, by_text_key = plan_edits(self._list, edits, orphans)
        in_list = [Forgot(frozenset(view.ids.doubted))] if view.ids.doubted else []  # the list decides about them now
        return Synced(by_call, by_text_key, (*in_list, *self._events(visible, amended)))

    def with_replies(self, replies: Mapping[str, str]) -> Mapping[TextKey, str]:
        """Return the texts that put other replies into the list, as in `Synced.by_text_key`. `replies`: the new reply
        by call ID."""
        edits = (
            (location, event, replies[event.call_id].removeprefix(event.head).removesuffix(event.tail))
            for event, location in ((delivery.event, location) for delivery, location in self._locations.items())
            if event.origin is Origin.RESULT and event.call_id in replies
        )
        return plan_edits(self._list, edits)[1]

    def located(self) -> list[tuple[Delivery, Location]]:
        """Return the results that are in the list, with their locations."""
        found = [(d, location) for d, location in self._locations.items() if d.event.origin is Origin.RESULT]
        return [(delivery, location) for delivery, location in found if location.text is not None]

    def inputs(self) -> list[tuple[str, str]]:
        """See `MessageTexts.inputs`."""
        return self._list.inputs()

    def message_of(self, text: MessageText) -> int:
        """Return the index of the message that contains a text."""
        return self._list.order()[text][0]

    def _check_markers(
        self, view: View, visible: Sequence[Delivery], amended: dict[Delivery, Amended]
    ) -> tuple[list[Edit], list[Delivery]]:
        """Repair the markers of replies that stay. The oldest come first, because markers name older texts. Return the
        edits of the list, and the replies that the model never read: their lines must return."""
        gone = [delivery for delivery in visible if delivery not in self._locations]
        changed: dict[tuple[str, Origin], str | None] = {(d.event.call_id, d.event.origin): None for d in gone}
        changed |= {(d.event.call_id, d.event.origin): to.text for d, to in amended.items() if to.lost}
        remaining = Remaining(view, view.is_visible, changed)
        edits: list[Edit] = []
        given_back: list[Delivery] = []
        for delivery in visible:
            location = self._locations.get(delivery) if delivery.event.markers else None
            if location is None:
                continue
            before = amended.get(delivery)
            event = with_amended(delivery.event, before) if before is not None else delivery.event
            lost = stale_markers(event, remaining)
            if event.call_id not in self._delivered and not _has_truncated_marker(event, lost):
                if any(marker.line >= 0 for marker in lost):
                    given_back.append(delivery)
                    remaining.lose(event.call_id, event.origin)
                    continue
                if any(marker.line >= 0 for marker in event.markers):
                    self._delivered.add(event.call_id)
            if lost:
                repaired = repair_markers(view, event, lost, None)
                amended[delivery] = replace(repaired, lost=before is not None and before.lost)
                edits.append((location, event, repaired.text))
            elif location.is_stale:
                edits.append((location, event, event.text))
        return edits, given_back

    def _names_calls(self, visible: Sequence[Delivery], log: Log) -> bool:
        """Return True if the list names calls by the IDs of this session. The IDs of calls that are gone are in the
        log, which is read once."""
        if not self._list.has_ids:
            return False
        if any(self._list.knows(delivery.event.call_id) for delivery in visible):
            return True
        if not visible or self._asked_log:
            return False
        try:
            logged = log()
        except StoreError:
            return False
        self._asked_log = True
        return any(self._list.knows(event.call_id) for event in logged if isinstance(event, Delivered))

    def _orphan_markers(
        self, view: View, amended: Mapping[Delivery, Amended], tag: str, log: Log, gives_back: bool
    ) -> Iterator[MarkerEdit]:
        """Yield the replacements of markers that are in no visible reply.

        A reply that was forgotten and is in the list again, for example after an undone rewind, does not count as seen.
        The source of its markers may leave without notice, so the markers are replaced immediately. Markers of replies
        that were not shown yet are replaced, too, by the lines themselves."""
        promised = cache(lambda: _promised(self._locations, amended))
        for text in self._list.marked(tag):
            for at, line in text.marked_lines(tag) if not text.own else ():
                for (start, end), made in self._logged.find(line, tag, view, log):
                    self._delivered.update(() if gives_back else made)
                    own = [made[text.call_id]] if text.call_id and text.call_id in made else list(made.values())
                    shown = line[start:end]
                    marker = unescaped(shown)
                    if not self._may_stay(text, marker, made, own, promised()):
                        instead = self._logged.instead(own, self._delivered)
                        new = instead if marker == shown else json.dumps(instead)[1:-1]
                        yield text, (at + start, at + end), new, made.values()

    def _may_stay(
        self, text: MessageText, marker: str, made: Mapping[str, Made], own: list[Made], promised: set[tuple[str, str]]
    ) -> bool:
        """Return True if a marker that is in no visible reply may stay. `own`: the candidate replies for its text."""
        if text.call_id in (None, *made) and any((each.event.call_id, marker) in promised for each in own):
            return True  # a copy of a reply that is handled elsewhere
        if self._has_ids and text.call_id not in made and self._logged.is_content(marker):
            return True
        if text.call_id is not None or not self._has_ids:
            return False
        if all(map(self._list.knows, made)):
            return True  # the replies are in the list, so this text only quotes one, as a user may do
        return all(_has_lines_beside(text, each) for each in own)  # the host joined old turns into one text

    def _locate_all(self, visible: Sequence[Delivery], reused: Container[str], tag: str) -> dict[Delivery, Amended]:
        """Search for each delivery that is not known to be at its old location. A delivery without a location is then
        gone. Return the amendments of truncated deliveries. If several calls had one ID, the ID does not identify a
        truncated text: it may be another call's."""
        for delivery in self._locations.keys() - set(visible):
            self._leave(delivery)
        amended: dict[Delivery, Amended] = {}
        missing: list[Delivery] = []
        for delivery in visible:
            location = self._locations.get(delivery)
            if location is not None and (location.text is None or not location.text.gone):
                continue
            self._leave(delivery)
            event = delivery.event
            texts = self._named(event)
            is_shared = event.call_id in reused or len({text.raw for text in texts}) > 1
            if is_shared:  # another call's text may contain all lines of this one's
                texts = [text for text in texts if text.raw == texts[-1].raw and _is_all_of(text, event)]
            if not event.text:
                self._locations[delivery] = Location()
            elif not texts:
                missing.append(delivery)
            elif location := _locate_in(event, texts[::-1], tag):
                self._take(delivery, location)
            elif not is_shared:
                best = max(texts, key=lambda text: longest_run(event, text.free))
                amended[delivery] = self._take_part(delivery, best, tag)
        if missing:
            self._find_by_lines(missing, visible, amended, tag)
        return amended

    def _find_by_lines(
        self, missing: Sequence[Delivery], visible: Sequence[Delivery], amended: dict[Delivery, Amended], tag: str
    ) -> None:
        """Search for deliveries in the texts that no call of the view names. If a list has had this session's IDs,
        search only for deliveries without an ID.
        """
        # A missing call is gone in such a list, even if its lines are elsewhere: a marker would not name a summary.
        wanted = [d for d in missing if not self._has_ids or _is_nowhere_named(d.event)]
        if not wanted:
            return
        calls = {delivery.event.call_id for delivery in visible}
        opening = {text for text in self._list.opening() if text.call_id is None}  # the task or a summary may quote it

        def is_open(text: MessageText, event: Delivered) -> bool:
            if text.call_id in calls or (event.origin is Origin.COMMAND) is not text.own:
                return False
            return event.origin is Origin.RESTORED or text not in opening

        ranks = cache(lambda: {delivery: rank for rank, delivery in enumerate(visible)})
        search = Search(self._list, wanted, is_open, ranks, self._locations, tag)
        for delivery, location in search.find_complete().items():
            self._take(delivery, location)
        for delivery, location in search.find_parts():
            if location.is_stale:
                self._take(delivery, location)
            elif location.text is not None:
                amended[delivery] = self._take_part(delivery, location.text, tag)

    def _named(self, event: Delivered) -> list[MessageText]:
        if event.origin is Origin.RESTORED:
            return []
        return self._list.named(Kind.CALL if event.origin is Origin.COMMAND else Kind.RESULT, event.call_id)

    def _take(self, delivery: Delivery, location: Location) -> None:
        self._locations[delivery] = location
        if location.text is not None:
            location.text.claim(delivery, location.char_span)

    def _take_part(self, delivery: Delivery, text: MessageText, tag: str) -> Amended:
        if text.call_id != delivery.event.call_id:
            amended, char_span = extract_rest(delivery.event, text.free, tag)
            self._take(delivery, Location(text, char_span))
            return amended
        # All of the text is the reply, as the harness shows it now. But a marker in it may be from elsewhere.
        self._locations[delivery] = Location(text, (0, len(body(text.content))))
        text.claim(delivery, (0, 0))
        event, content = delivery.event, text.content
        proven = answer_shown(event, content) if event.unconfirmed else None
        return proven or amend(event, content if _shares_lines(event, content, tag) else "")

    def _leave(self, delivery: Delivery) -> None:
        location = self._locations.pop(delivery, None)
        if location is not None and location.text is not None:
            location.text.release(delivery)

    def _events(self, visible: Sequence[Delivery], amended: Mapping[Delivery, Amended]) -> list[Event]:
        """Return the events of a sync. A call without any text left becomes `Forgot`. If only some of its texts are
        gone, each of them becomes an empty `Amended`."""
        gone = [delivery for delivery in visible if delivery not in self._locations]
        amended = {d: confirmed(d.event.call_id) for d in self._locations if d.event.unconfirmed} | dict(amended)
        if not gone:
            return list(amended.values())
        left = {delivery.event.call_id for delivery in self._locations if delivery.event.text}
        forgotten = frozenset(delivery.event.call_id for delivery in gone) - left
        events: list[Event] = [Forgot(forgotten)] if forgotten else []
        events += [Amended(d.event.call_id, "", origin=d.event.origin) for d in gone if d.event.call_id in left]
        return events + [event for event in amended.values() if event.call_id not in forgotten]


def _promised(locations: Iterable[Delivery], amended: Mapping[Delivery, Amended]) -> set[tuple[str, str]]:
    """Return (call ID, marker) for the markers with a source in replies that stay."""
    replies = (with_amended(d.event, amended[d]) if d in amended else d.event for d in locations if d.event.markers)
    markers = ((reply.call_id, marker) for reply in replies for marker in reply.markers)
    return {(call_id, marker.wording) for call_id, marker in markers if marker.sources and marker.line >= 0}


def _shares_lines(event: Delivered, content: str, tag: str) -> bool:
    """Return True if this text contains a line of the delivery, or what may be a marker. Without them nothing shows
    that the text belongs to the same call, and the log does not need it."""
    lines = {line for line in split_lines(event.text) if not is_blank(line)}
    return may_contain(content, tag) or not lines.isdisjoint(content.split("\n"))


def _with_unconfirmed(view: View) -> list[Delivery]:
    """Return the deliveries that may be in the list: visible deliveries, and unconfirmed replies with their texts."""
    visible = view.deliveries
    if not view.waiting:
        return visible
    return [Delivery(view.answer_of(d), d.order) if d.event.unconfirmed else d for d in visible]


def _has_truncated_marker(event: Delivered, markers: Iterable[MarkerRecord]) -> bool:
    """Return True if only the beginning of one of these markers is left. Its lines cannot replace such a marker."""
    lines = event.text.split("\n")
    return any(marker.line >= 0 and marker.wording not in lines[marker.line] for marker in markers)


def _is_nowhere_named(event: Delivered) -> bool:
    """Return True if the harness has no ID for the text."""
    return event.origin is Origin.RESTORED or event.call_id.startswith(MADE_UP_ID)


def _has_lines_beside(text: MessageText, made: Made) -> bool:
    """Return True if the lines that a marker replaces are in the same text."""
    lines = made.lines
    return lines is not None and "\n{}\n".format("\n".join(lines)) in f"\n{text.content}\n"


def _is_all_of(text: MessageText, event: Delivered) -> bool:
    """Return True if a text is exactly this result, with the host's words around it that the log knows. Other
    deliveries are not checked."""
    shown = event.head + event.text + event.tail
    return event.origin is not Origin.RESULT or body(text.content) == body(shown)


def _locate_in(event: Delivered, texts: Sequence[MessageText], tag: str) -> Location | None:
    """Return the location of a delivery, unchanged or with markers from before a repair. Return None if there is
    none."""
    whole = ((text, locate(event, text.free), False) for text in texts)
    is_stale = ((text, locate_stale(event, text.free, tag), True) for text in texts)
    found = (Location(text, span, is_old) for text, span, is_old in chain(whole, is_stale) if span is not None)
    return next(found, None)
