"""A conversation that is condensed and never cut: an append-only log, and the view of it that the model is sent.

    history = History()
    history.append(Item("m1", {"role": "user", "content": "Fix the tax"}))
    ...
    shorter = compactor.maybe_compact(history.messages())
    for event in difference("c1", history.view, shorter):
        history.append(event)

Forgetting is an event, so all that was ever said stays in `events`. The view is a fold over them and nothing else: one
that grew by `append` and one that `from_events` rebuilds after a restart are equal. The shape is that of OpenHands'
software-agent-sdk (`Condensation`, `View`); `Replaced` is for results that were pruned and markers that were mended.

`append` costs what the event changes: the items stand in a dict by id, so that one more, one fewer and one replaced
cost the same in any history. Only a summary that goes before other items costs as much as the view is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """A message of the conversation, in the shape of its API, under an id of its own. From then on it is read-only."""

    id: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replaced:
    """In the place of the item `id` now stands `message`. An id that is not in view: nothing happens."""

    id: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condensed:
    """The items `forgotten` left the view; then `summary`, if any, was inserted before the item at `offset`.

    `offset` counts from 0 in what is left after the forgetting; past the end it is the end. Ids that are not in view
    are forgotten without effect. ValueError: a summary without an offset or the other way round, a negative offset.
    """

    id: str
    forgotten: frozenset[str] = frozenset()
    summary: str | None = None
    offset: int | None = None

    def __post_init__(self) -> None:
        if (self.summary is None) != (self.offset is None):
            raise ValueError(f"condensation {self.id!r} has one of summary and offset: give both or neither")
        if self.offset is not None and self.offset < 0:
            raise ValueError(f"condensation {self.id!r} has offset {self.offset}: offsets count from 0")

    @property
    def summary_id(self) -> str:
        """The id under which the summary stands in the view, for a later condensation to forget."""
        return f"{self.id}-summary"


def summary_message(summary: str) -> dict[str, Any]:
    """A summary as the model reads it."""
    return {"role": "user", "content": summary}


@dataclass(frozen=True, slots=True)
class CondensationRequested:
    """Somebody asked for a condensation; the next one answers."""


HistoryEvent = Item | Replaced | Condensed | CondensationRequested

_KINDS: dict[str, type[HistoryEvent]] = {
    "item": Item,
    "replaced": Replaced,
    "condensed": Condensed,
    "condensation_requested": CondensationRequested,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_dict(event: HistoryEvent) -> dict[str, Any]:
    """The event as plain data, fit for JSON if its message is."""
    data = {field.name: getattr(event, field.name) for field in fields(event)}
    if isinstance(event, Condensed):
        data["forgotten"] = sorted(event.forgotten)
    return {"event": _NAMES[type(event)], **data}


def from_dict(data: Mapping[str, Any]) -> HistoryEvent:
    """The event that `to_dict` wrote. ValueError for anything else."""
    try:
        values = dict(data)
        kind = _KINDS[values.pop("event")]
        if "forgotten" in values:
            if not isinstance(values["forgotten"], list):
                raise TypeError("forgotten is no list of ids")
            values["forgotten"] = frozenset(values["forgotten"])
        return kind(**values)
    except (TypeError, KeyError) as error:
        raise ValueError(f"not an event of a history: {data!r:.200} ({error})") from error


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
