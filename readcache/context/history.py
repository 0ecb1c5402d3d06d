"""A conversation that is condensed and never cut: an append-only log, and the view of it that the model is sent.

    history = History()
    history.append(Item("m1", {"role": "user", "content": "Fix the tax"}))
    history.append(Item("m2", {"role": "assistant", "content": "I look."}))
    history.append(Condensed("c1", frozenset({"m2"}), summary="It looked.", offset=1))
    history.messages()  # the task, and the summary

The view is a fold over the events and nothing else, so that a process that comes after a crash has the same one. The
shape is that of OpenHands' software-agent-sdk (`Condensation`, `View`); `Replaced` is for results that were pruned and
markers that were mended. `append` costs the same in any history, but for a summary, which costs as much as the view is
long.

`MessageLog` keeps a history in step with a harness's list and with a store.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from readcache.messages.messages import Kind, Message, Raw, normalise, normalise_one, plain
from readcache.model.history_events import CondensationRequested, Condensed, HistoryEvent, Item, Replaced

if TYPE_CHECKING:
    from readcache.log.history_log import HistoryLog


def summary_message(summary: str) -> dict[str, Any]:
    """A summary as the model reads it."""
    return {"role": "user", "content": summary}


class History:
    """The log of one conversation and its view. One writer; everybody else only reads."""

    def __init__(self) -> None:
        self.requested = False  # was a condensation requested that has not happened yet?
        self._log: list[HistoryEvent] = []
        self._items: dict[str, Item] = {}
        self._ids: set[str] = set()  # of all items there ever were
        self._view: tuple[Item, ...] | None = None

    @property
    def events(self) -> tuple[HistoryEvent, ...]:
        """The log, oldest first."""
        return tuple(self._log)

    @property
    def view(self) -> tuple[Item, ...]:
        """The items in view: the very same object until something changes them."""
        if self._view is None:
            self._view = tuple(self._items.values())
        return self._view

    def messages(self) -> list[Mapping[str, Any]]:
        """What the model is to be sent. A summary is a user message."""
        return [item.message for item in self.view]

    def append(self, event: HistoryEvent) -> None:
        """Log one more event and fold it into the view.

        ValueError, and nothing is changed, for the id of an item or summary that was there before.
        """
        new = event.id if isinstance(event, Item) else None  # what it brings into the view
        if isinstance(event, Condensed) and event.summary is not None:
            new = event.summary_id
        if new in self._ids:
            raise ValueError(f"the history already has an item {new!r}: give each item its own id")
        if isinstance(event, Condensed):
            self._condense(event)
        elif isinstance(event, CondensationRequested):
            self.requested = True
        elif isinstance(event, Item) or event.id in self._items:
            self._items[event.id] = Item(event.id, event.message)
            self._view = None
        if new is not None:
            self._ids.add(new)
        self._log.append(event)

    def _condense(self, event: Condensed) -> None:
        self.requested = False
        for gone in event.forgotten & self._items.keys():
            del self._items[gone]
            self._view = None
        if event.summary is not None and event.offset is not None:
            items = list(self._items.values())
            items.insert(event.offset, Item(event.summary_id, summary_message(event.summary)))
            self._items = {item.id: item for item in items}
            self._view = None


# ---------------------------------------------------------------- a list and its history


class MessageLog:
    """The message list of one conversation as a `History` in the session's store, and each message of it read once. A
    failure of ours costs the record and never the list."""

    def __init__(self, log: HistoryLog) -> None:
        self.history = History()
        self._log = log
        self._is_loaded = False  # has what the store held before been read?
        self._messages: list[Message] = []  # those of the history's view

    def load(self) -> list[Message]:
        """The messages in view; those of earlier processes are read from the store, as soon as it can be read."""
        stored = None if self._is_loaded else self._log.events()
        if stored is not None:
            self._is_loaded = True
            self.history = History()
            for event in stored:
                with contextlib.suppress(ValueError):  # there twice: a store may fail after it took an event
                    self.history.append(event)
            self._messages = normalise(self.history.messages())
        return self._messages

    def take(self, messages: Sequence[Raw]) -> list[Message]:
        """Reads the harness's list and records what is new, changed or gone in it."""
        try:
            known = self.load()
            pairs = zip_longest(known[: len(messages)], messages)
            read = [m if m is not None and _holds(m.raw, raw) else normalise_one(plain(raw)) for m, raw in pairs]
            self._record(self._changes(known, read), read)
            return read
        except Exception as error:  # a list that cannot be compared or copied is compacted all the same
            self._log.fail(error)
            return normalise(messages)

    def condense(self, messages: Sequence[Message]) -> None:
        """Records that a compaction made these of the messages."""
        try:
            name = _random_id()
            events: list[HistoryEvent] = [*difference(name, self.history.view, self._messages, messages)]
            if events and not isinstance(events[0], Condensed):
                events.insert(0, Condensed(name))
            self._record(events, messages)
        except Exception as error:  # as in `take`
            self._log.fail(error)

    def request(self) -> None:
        """Records that somebody asked for a condensation."""
        self._record([CondensationRequested()], self.load())

    def _changes(self, known: list[Message], read: list[Message]) -> list[HistoryEvent]:
        """What happened to the known messages, and the new ones behind them."""
        end = len(known)
        events: list[HistoryEvent] = []
        if len(read) < end or any(a is not b for a, b in zip(known, read, strict=False)):
            places = find_places(known, read)
            end = max((at + 1 for at, place in enumerate(places) if place is not None), default=0)
            events += difference(_random_id(), self.history.view, known, read[:end])
        return events + [Item(_random_id(), message.raw) for message in read[end:]]

    def _record(self, events: Sequence[HistoryEvent], messages: Sequence[Message]) -> None:
        for event in events:
            self.history.append(event)
        self._messages = list(messages)
        if self._is_loaded:  # else what the store holds before these is not known: they are recorded when it is
            self._log.append(events)


def _random_id() -> str:
    return os.urandom(8).hex()


def _holds(known: Raw, message: Raw) -> bool:
    """True if the message is what it was when the copy `known` of it was made."""
    return known == message or known == plain(message)


def difference(
    condensation_id: str, view: Sequence[Item], before: Sequence[Message], after: Sequence[Message]
) -> list[Condensed | Replaced]:
    """The events that make `view`, whose messages are `before`, hold just the messages `after`; none if it does.

    A message keeps its item by the ids of its calls and results, whatever was done to their texts: it is `Replaced`
    where it differs. All that is new is a summary of the condensation; of `<condensation_id>.2`, `.3` … what comes
    after the first.
    """
    places = find_places(before, after)
    kept = {place for place in places if place is not None}
    forgotten = frozenset(item.id for place, item in enumerate(view) if place not in kept)
    condensed: list[Condensed | Replaced] = []
    replaced: list[Condensed | Replaced] = []
    for offset, (place, message) in enumerate(zip(places, after, strict=True)):
        if place is None:
            name = f"{condensation_id}.{len(condensed) + 1}" if condensed else condensation_id
            words = "\n".join(part.text for part in message.parts)
            event = Condensed(name, frozenset() if condensed else forgotten, words, offset)
            condensed.append(event)
            item = Item(event.summary_id, summary_message(words))
        else:
            item = view[place]
        if item.message != message.raw:
            replaced.append(Replaced(item.id, message.raw))
    if not condensed and forgotten:
        condensed.append(Condensed(condensation_id, forgotten))
    return condensed + replaced


def find_places(before: Sequence[Message], after: Sequence[Message]) -> list[int | None]:
    """For each message of `after` its place in `before`, ascending; None for a new one."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, message in enumerate(before):
        places[_identity(message)].append(place)
    out: list[int | None] = []
    last = -1
    for message in after:
        same = places[_identity(message)]
        at = bisect(same, last)
        out.append(same[at] if at < len(same) else None)
        last = same[at] if at < len(same) else last
    return out


def _identity(message: Message) -> Hashable:
    """By what a message is known again: its calls and results, or else its words."""
    ids = tuple((part.kind, part.call_id) for part in message.parts if part.kind in (Kind.CALL, Kind.RESULT))
    return ids if any(call_id for _, call_id in ids) else (message.role, tuple(part.text for part in message.parts))
