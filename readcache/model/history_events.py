"""The events of a conversation's history: its messages, and what was done to them. `context.history` folds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """A message of the conversation, in the shape of its API, under an id of its own. From then on it is read-only."""

    id: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replaced:
    """`message` replaced the item `id`. An id that is not in view has no effect."""

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
            raise ValueError(f"condensation {self.id!r} needs both summary and offset, or neither")
        if self.offset is not None and self.offset < 0:
            raise ValueError(f"condensation {self.id!r} has offset {self.offset}: offsets count from 0")

    @property
    def summary_id(self) -> str:
        """The id under which the summary stands in the view, for a later condensation to forget."""
        return f"{self.id}-summary"


@dataclass(frozen=True, slots=True)
class CondensationRequested:
    """A condensation was requested; the next one answers the request."""


HistoryEvent = Item | Replaced | Condensed | CondensationRequested
