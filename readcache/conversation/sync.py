"""What of the view still stands in the message list, whatever was done to the list: compaction, pruning, clearing,
truncation, rewind, fork, edits. The list is the truth, and nothing needs to be known of how it came to be.

A text is looked for where its call id says. Where the list has no ids, or not this session's, it is looked for by its
lines: they stand whole in some message, between whatever words the harness puts around them. Of a text that was cut,
the lines that are left keep their credit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from readcache.conversation.locate import CharSpan, body, cut_out, locate, locate_unmended, longest_run
from readcache.conversation.mend import RetiredMarkers, dangling, mend
from readcache.conversation.settle import settle
from readcache.conversation.texts import MessageText, MessageTexts
from readcache.messages.messages import Kind
from readcache.model.events import MADE_UP_ID, Delivered, Event, Forgot, Origin, Settled
from readcache.model.key_view import Delivery
from readcache.model.text import split_lines
from readcache.model.view import View

# Characters in one piece by which a text that was cut is known again in a list without ids. Every harness that was
# looked at leaves a thousand or more; two of the shortest markers have 120.
SHORTEST_LEFT = 120


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a delivery stands, or what is left of it. `text` is None for one that shows nothing."""

    text: MessageText | None = None
    stretch: CharSpan = (0, 0)
    unmended: bool = False  # the list still has markers that were replaced


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync found. `by_call`: call id -> the whole of what is to stand as that result. `by_text`: text as it
    stands in the list -> what is to stand there. `events`: after them the view agrees with the list."""

    by_call: Mapping[str, str] = field(default_factory=dict)
    by_text: Mapping[str, str] = field(default_factory=dict)
    events: tuple[Event, ...] = ()


class Reconciler:
    """Where the texts of a view stand in a message list, kept from one sync to the next."""

    def __init__(self) -> None:
        self._list = MessageTexts()
        self._places: dict[Delivery, _Place] = {}
        self._has_ids = False  # has a list named a call of this session by its id?
        self._asked_log = False
        self._returned = RetiredMarkers()

    def reconcile(
        self,
        view: View,
        messages: Sequence[Mapping[str, Any]],
        *,
        tag: str,
        log: Callable[[], Iterable[Event]] = tuple,
    ) -> Synced:
        """The texts to put into the list, and the events after which the view agrees with it.

        The texts are for replies that stay and whose markers name what is gone, with the harness's own words around the
        reply as they are. Where the list does not name the call, its text is the reply alone.

        Costs a comparison for each message that is as it was, and a look at each visible delivery. `log` is read only
        where markers stand in the list that are in no visible reply.
        """
        self._list.update(messages)
        visible = view.deliveries
        for delivery in self._places.keys() - set(visible):
            self._leave(delivery)
        self._has_ids = self._has_ids or self._names_calls(visible, log)
        settled = self._find(visible, tag)
        touched = {delivery.event.call_id for delivery in visible if delivery not in self._places}
        touched |= {delivery.event.call_id for delivery, to in settled.items() if to.lost}
        untouched = {delivery.event.call_id for delivery in visible} - touched
        rewrites: dict[str, str] = {}
        changes: defaultdict[MessageText, dict[CharSpan, str]] = defaultdict(dict)
        for delivery, place in self._places.items():
            event = delivery.event
            if not event.pointers and not place.unmended:
                continue
            if delivery in settled:
                event = _settled(event, settled[delivery])
            text = event.text if place.unmended else None
            lost = dangling(view, event, untouched)
            if lost:
                before = settled.get(delivery)
                mended = mend(view, event, lost, None)
                settled[delivery] = replace(mended, lost=before is not None and before.lost)
                text = mended.text if mended.text != event.text else text
            if text is not None and place.text is not None:
                named = place.text.call_id == event.call_id
                changes[place.text][place.stretch] = body(text)
                rewrites[event.call_id] = place.text.rewritten({place.stretch: body(text)}) if named else text
        by_text = _by_text(changes)
        self._retire_returned(view, settled, tag, log, rewrites, by_text)
        return Synced(rewrites, by_text, tuple(self._events(visible, settled)))

    def with_replies(self, replies: Mapping[str, str]) -> dict[str, str]:
        """Other texts for replies that stand in the list, by call id, as `Synced.by_text` has them."""
        changes: defaultdict[MessageText, dict[CharSpan, str]] = defaultdict(dict)
        for delivery, place in self._places.items():
            event = delivery.event
            if event.origin is Origin.RESULT and event.call_id in replies and place.text is not None:
                changes[place.text][place.stretch] = body(replies[event.call_id])
        return _by_text(changes)

    def _names_calls(self, visible: Sequence[Delivery], log: Callable[[], Iterable[Event]]) -> bool:
        """Does the list name calls by the ids that this session was told? Those of calls that are gone are in the log,
        which is asked once."""
        if not self._list.has_ids:
            return False
        if any(self._list.knows(delivery.event.call_id) for delivery in visible):
            return True
        if not visible or self._asked_log:
            return False
        self._asked_log = True
        return any(self._list.knows(event.call_id) for event in log() if isinstance(event, Delivered))

    def _retire_returned(
        self,
        view: View,
        settled: Mapping[Delivery, Settled],
        tag: str,
        log: Callable[[], Iterable[Event]],
        rewrites: dict[str, str],
        by_text: dict[str, str],
    ) -> None:
        """Replies that were forgotten and are in the list again, as when a rewind is undone, do not count as seen: what
        their markers point at may leave without notice, so that the markers have to go at once."""
        for text in self._list.marked(tag):
            if not text.markers(tag) or text.own or (text.call_id is None and self._has_ids):
                continue
            lines: dict[str, str] = {}
            for line, made in self._returned.known(text.markers(tag), log).items():
                of_text = [made[text.call_id]] if text.call_id in made else list(made.values())
                is_own = text.call_id is None or text.call_id in made
                if is_own and any(self._promises(view, settled, event.call_id, line) for event in of_text):
                    continue  # a copy of a reply that is seen to
                if _is_content(view, text.call_id, line):
                    continue
                lines[line] = self._returned.instead(line)
                for event in of_text if text.call_id is None else ():
                    rewrites.setdefault(event.call_id, self._returned.retired(event))
            if lines:
                by_text[text.raw] = text.with_lines(lines, by_text.get(text.raw, text.raw))
                if text.call_id is not None and not self._would_lose(view, text.call_id, by_text[text.raw]):
                    raw = rewrites.get(text.call_id, text.raw)
                    rewrites[text.call_id] = text.with_lines(lines, raw)

    def _promises(self, view: View, settled: Mapping[Delivery, Settled], call_id: str, marker: str) -> bool:
        """True if a reply to this call that stays has the marker, and its source."""
        staying = [d for d in view.of_call(call_id) if d in self._places]
        shown: list[Delivered | Settled] = [settled.get(delivery, delivery.event) for delivery in staying]
        pointers = [pointer for event in shown for pointer in event.pointers]
        return any(pointer.sources and pointer.line >= 0 and pointer.marker == marker for pointer in pointers)

    def _would_lose(self, view: View, call_id: str, raw: str) -> bool:
        """True if lines that count as visible would go with it when every result of this id became `raw`."""
        texts = self._list.named(Kind.RESULT, call_id)
        if all(text.raw == texts[0].raw for text in texts):
            return False
        return any(settle(d.event, raw).lost for d in view.of_call(call_id) if d.event.origin is Origin.RESULT)

    def _find(self, visible: Sequence[Delivery], tag: str) -> dict[Delivery, Settled]:
        """Looks for each delivery that is not known to stand where it stood. What has no place after that is gone; what
        has one and was cut is settled."""
        settled: dict[Delivery, Settled] = {}
        missing: list[Delivery] = []
        for delivery in visible:
            place = self._places.get(delivery)
            if place is not None and (place.text is None or not place.text.gone):
                continue
            self._leave(delivery)
            event = delivery.event
            texts = self._named(event)
            if not event.text:
                self._places[delivery] = _Place()
            elif not texts:
                missing.append(delivery)
            elif place := _standing_in(event, texts[::-1], tag):
                self._take(delivery, place)
            else:
                best = max(texts, key=lambda text: longest_run(event, text.free))
                settled[delivery] = self._take_part(delivery, best)
        if missing:
            self._find_by_lines(missing, {delivery.event.call_id for delivery in visible}, settled, tag)
        return settled

    def _find_by_lines(
        self, missing: Sequence[Delivery], calls: set[str], settled: dict[Delivery, Settled], tag: str
    ) -> None:
        """Looks for deliveries in the texts that no call of the view names.

        In a list that has our calls' ids, or had them, a call that is not in it is gone, wherever else its lines may
        stand: in a summary, which is not what a marker would name. Of equal texts the newest are taken to be left,
        since histories are cut from the front; longer ones are looked for first, since they may hold shorter ones.
        """
        wanted: defaultdict[str, list[Delivery]] = defaultdict(list)
        for delivery in missing:
            event = delivery.event
            if not self._has_ids or event.origin is Origin.RESTORED or event.call_id.startswith(MADE_UP_ID):
                for line in _known_by(event):
                    wanted[line].append(delivery)
        opening = {text for text in self._list.opening() if text.call_id is None} if wanted else set()
        for exactly in (True, False):
            for text in self._list.newest_first():
                if not wanted:
                    return
                if text.call_id in calls:
                    continue
                for delivery in _perhaps_in(text, wanted):
                    if text in opening and delivery.event.origin is not Origin.RESTORED:
                        continue  # the task or a summary, which may quote it
                    place = _whole(delivery.event, text) if exactly else _unmended(delivery.event, text, tag)
                    if place is not None:
                        self._take(delivery, place)
                    elif not exactly and _is_left(delivery.event, text.free):
                        settled[delivery] = self._take_part(delivery, text)
                    else:
                        continue
                    for line in _known_by(delivery.event):
                        wanted[line].remove(delivery)
                        if not wanted[line]:
                            del wanted[line]

    def _named(self, event: Delivered) -> list[MessageText]:
        if event.origin is Origin.RESTORED:
            return []
        return self._list.named(Kind.CALL if event.origin is Origin.COMMAND else Kind.RESULT, event.call_id)

    def _take(self, delivery: Delivery, place: _Place) -> None:
        self._places[delivery] = place
        if place.text is not None:
            place.text.claim(delivery, place.stretch)

    def _take_part(self, delivery: Delivery, text: MessageText) -> Settled:
        if text.call_id != delivery.event.call_id:
            settled, stretch = cut_out(delivery.event, text.free)
            self._take(delivery, _Place(text, stretch))
            return settled
        # All of it is the reply's, as the harness shows it now; but not every marker in it needs to be.
        self._places[delivery] = _Place(text, (0, len(body(text.content))))
        text.claim(delivery, (0, 0))
        return settle(delivery.event, text.content)

    def _leave(self, delivery: Delivery) -> None:
        place = self._places.pop(delivery, None)
        if place is not None and place.text is not None:
            place.text.release(delivery)

    def _events(self, visible: Sequence[Delivery], settled: Mapping[Delivery, Settled]) -> list[Event]:
        """Calls with no text left become `Forgot`; if one of several texts is gone, it becomes an empty `Settled`."""
        gone = [delivery for delivery in visible if delivery not in self._places]
        if not gone:
            return list(settled.values())
        left = {delivery.event.call_id for delivery in self._places if delivery.event.text}
        forgotten = frozenset(delivery.event.call_id for delivery in gone) - left
        events: list[Event] = [Forgot(forgotten)] if forgotten else []
        events += [Settled(d.event.call_id, "", origin=d.event.origin) for d in gone if d.event.call_id in left]
        return events + [event for event in settled.values() if event.call_id not in forgotten]


def _by_text(changes: Mapping[MessageText, Mapping[CharSpan, str]]) -> dict[str, str]:
    return {text.raw: text.rewritten(changed) for text, changed in changes.items()}


def _is_content(view: View, call_id: str | None, marker: str) -> bool:
    """True if the call showed that line as one of a file, into which the agent had written a marker."""
    shown = (d.event for d in view.of_call(call_id or "") if marker in d.event.text)
    return any(
        line == marker and all(pointer.line != k for pointer in event.pointers)
        for event in shown
        for k, line in enumerate(split_lines(event.text))
    )


def _standing_in(event: Delivered, texts: Sequence[MessageText], tag: str) -> _Place | None:
    places = chain((_whole(event, text) for text in texts), (_unmended(event, text, tag) for text in texts))
    return next((place for place in places if place is not None), None)


def _settled(event: Delivered, to: Settled) -> Delivered:
    return replace(event, text=to.text, pieces=to.pieces, pointers=to.pointers)


def _whole(event: Delivered, text: MessageText) -> _Place | None:
    stretch = locate(event, text.free)
    return None if stretch is None else _Place(text, stretch)


def _unmended(event: Delivered, text: MessageText, tag: str) -> _Place | None:
    stretch = locate_unmended(event, text.free, tag)
    return None if stretch is None else _Place(text, stretch, unmended=True)


def _known_by(event: Delivered) -> set[str]:
    """The lines by which a delivery is looked for: its first that is neither blank nor a marker, and its markers. Those
    may be others in the list by now."""
    lines, markers = split_lines(event.text), {pointer.line for pointer in event.pointers}
    own = [line for k, line in enumerate(lines) if line.strip() and k not in markers]
    return {lines[k] for k in markers if k >= 0}.union(own[:1] or lines[:1])


def _perhaps_in(text: MessageText, wanted: Mapping[str, Sequence[Delivery]]) -> list[Delivery]:
    """The deliveries that may stand in a text, the longest first, of those the newest."""
    lines = [line for line in text.free.split("\n") if line in wanted]
    found = dict.fromkeys(delivery for line in lines for delivery in wanted[line])
    fit = [delivery for delivery in found if (delivery.event.origin is Origin.COMMAND) == text.own]
    return sorted(fit, key=lambda delivery: (-len(delivery.event.text), -delivery.call))


def _is_left(event: Delivered, content: str) -> bool:
    """Is so much of a delivery left there that it is known again? One marker is enough; a restored section is known by
    its heading."""
    lines = content.split("\n")
    if not any(pointer.marker in lines for pointer in event.pointers) and longest_run(event, content) < SHORTEST_LEFT:
        return False
    heading = split_lines(event.text)[0]
    return event.origin is not Origin.RESTORED or cut_out(event, content)[0].text.startswith(heading + "\n")
