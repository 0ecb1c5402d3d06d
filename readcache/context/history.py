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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from readcache.model.history_events import CondensationRequested, Condensed, HistoryEvent, Item


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

    @classmethod
    def from_events(cls, events: Iterable[HistoryEvent]) -> History:
        """The history whose log this is. Errors as `append`."""
        history = cls()
        for event in events:
            history.append(event)
        return history

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
        new = _new_id(event)
        if new in self._ids:
            raise ValueError(f"the history has had an item {new!r} before: give each an id of its own")
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


def _new_id(event: HistoryEvent) -> str | None:
    """The id that an event brings into the view."""
    if isinstance(event, Item):
        return event.id
    return event.summary_id if isinstance(event, Condensed) and event.summary is not None else None
