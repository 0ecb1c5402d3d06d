"""What is known of one key (a file's lines, see `claims`): where they stand before the reader, and since when not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from readcache.model.events import Delivered, Origin, Piece
from readcache.model.spans import SpanMap

# Characters. Shorter results are not looked up as a whole: two of the shortest markers are longer.
SHORTEST_WHOLE = 120


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A visible text: the event that put it there. Compared by identity, as two events may be equal."""

    event: Delivered
    order: int = 0  # its place among the events that the view was folded from

    @property
    def call(self) -> int:
        """The number of its call, from 1."""
        return self.event.when.call

    @property
    def is_whole(self) -> bool:
        """True if a marker for an equal output may point at the text as a whole."""
        event = self.event
        is_output = event.origin is Origin.RESULT and not event.pointers and event.credited
        return is_output and len(event.text) >= SHORTEST_WHOLE


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A piece of a visible delivery."""

    delivery: Delivery
    piece: Piece

    @property
    def event(self) -> Delivered:
        """The event that delivered it."""
        return self.delivery.event


@dataclass(frozen=True, slots=True)
class Invalidation:
    """What made older references of a key stale. `written`: the agent's own write, by the command `label`."""

    written: bool
    label: str = ""


class KeyView:
    """The references of one key: a fold over what was shown of it and what made that stale."""

    __slots__ = ("current", "invalid", "loose", "numbered", "stale", "stale_before", "total")

    def __init__(self) -> None:
        self.numbered: SpanMap[Reference] = SpanMap()
        self.loose: list[Reference] = []  # those whose line numbers are not known
        self.current: list[Reference] = []  # numbered and loose, oldest first
        self.stale: list[Reference] = []
        self.invalid: Invalidation | None = None
        self.stale_before = 0  # deliveries whose `order` is lower are from before `invalid`
        self.total: int | None = None  # lines in the file, where its end was seen

    def add(self, reference: Reference) -> None:
        """Take in one more reference."""
        self.current.append(reference)
        piece = reference.piece
        if not piece.first:
            self.loose.append(reference)
            return
        last = piece.first + piece.count - 1
        self.numbered.assign(piece.first, last, reference)
        if piece.eof:
            self.total = last

    def add_late(self, reference: Reference) -> None:
        """Take in a reference of a delivery whose text became known only now."""
        if self.is_stale(reference.delivery):
            self.stale.append(reference)
        else:
            self.add(reference)

    def invalidate(self, step: Invalidation, order: int) -> None:
        """All that was shown before the event at place `order` is of the file as it was."""
        self.invalid, self.stale_before = step, order
        if self.current:
            self.stale += self.current
            self.numbered, self.loose, self.current, self.total = SpanMap(), [], [], None

    def changed(self, change: Callable[[list[Reference]], list[Reference]]) -> KeyView:
        """A new view of the key, after `change` of its references, current and stale."""
        new = KeyView()
        new.stale, new.invalid, new.stale_before = change(self.stale), self.invalid, self.stale_before
        for reference in change(self.current):
            new.add(reference)
        return new

    def replaced(self, old: Delivery, new: list[Reference]) -> KeyView:
        """A new view of the key, with `new` in the place of the references to `old`."""

        def put(known: list[Reference]) -> list[Reference]:
            out: list[Reference] = []
            for reference in known:
                if reference.delivery is not old:
                    out.append(reference)
                elif not out or out[-1] not in new:
                    out += new
            return out

        return self.changed(put)

    def references(self) -> Iterator[Reference]:
        """All of them, current and stale, newest first."""
        return chain(reversed(self.current), reversed(self.stale))

    def is_stale(self, delivery: Delivery) -> bool:
        """True if the key was written, or seen changed, since `delivery`."""
        return delivery.order < self.stale_before
