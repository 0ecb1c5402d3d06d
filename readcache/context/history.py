"""A conversation that is condensed and never cut: an append-only log, and the view of it that the model is sent.

    history = History()
    history.append(Item("m1", {"role": "user", "content": "Fix the tax"}))
    history.append(Item("m2", {"role": "assistant", "content": "I look."}))
    history.append(Condensed("c1", frozenset({"m2"}), summary="It looked.", offset=1))
    history.messages()  # the task, and the summary

Forgetting is an event, so all that was ever said stays in `events`. The view is a fold over them and nothing else: one
that grew by `append` and one that `from_events` rebuilds after a restart are equal. The shape is that of OpenHands'
software-agent-sdk (`Condensation`, `View`); `Replaced` is for results that were pruned and markers that were mended.

`append` costs what the event changes: the items stand in a dict by id, so that one more, one fewer and one replaced
cost the same in any history. Only a summary that goes before other items costs as much as the view is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from readcache.model.history_events import Condensed, HistoryEvent, Item, Replaced


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
        if isinstance(event, Item):
            self._put(event)
        elif isinstance(event, Replaced):
            if event.id in self._items:
                self._put(Item(event.id, event.message))
        elif isinstance(event, Condensed):
            self._condense(event)
        else:
            self.requested = True
        if new is not None:
            self._ids.add(new)
        self._log.append(event)

    def _put(self, item: Item) -> None:
        """In its place, or at the end if it has none."""
        self._items[item.id] = item
        self._view = None

    def _condense(self, event: Condensed) -> None:
        self.requested = False
        for gone in event.forgotten & self._items.keys():
            del self._items[gone]
            self._view = None
        if event.summary is None or event.offset is None:
            return
        after = list(self._items.values())[event.offset :] if event.offset < len(self._items) else []
        self._put(Item(event.summary_id, summary_message(event.summary)))
        for item in after:
            self._items[item.id] = self._items.pop(item.id)


def _new_id(event: HistoryEvent) -> str | None:
    """The id that an event brings into the view."""
    if isinstance(event, Item):
        return event.id
    return event.summary_id if isinstance(event, Condensed) and event.summary is not None else None
