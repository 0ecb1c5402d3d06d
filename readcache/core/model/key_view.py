"""What is known of one key (a file's lines, see `claims`): where they stand before the reader, and since when not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from readcache.core.model.events import Delivered, MappedSpan, Origin
from readcache.core.model.spans import SpanMap

# Characters. Shorter results are not looked up as a whole: two of the shortest markers are longer.
SHORTEST_IDENTICAL = 120


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
    def is_complete(self) -> bool:
        """True if a marker for an equal output may point at the text as a whole."""
        event = self.event
        is_output = event.origin is Origin.RESULT and not event.markers and event.credited
        return is_output and len(event.text) >= SHORTEST_IDENTICAL


@dataclass(frozen=True, slots=True, eq=False)
class VisibleSpan:
    """A piece of a visible delivery."""

    delivery: Delivery
    mapped: MappedSpan

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
        self.numbered: SpanMap[VisibleSpan] = SpanMap()
        self.loose: list[VisibleSpan] = []  # those whose line numbers are not known
        self.current: list[VisibleSpan] = []  # numbered and loose, oldest first
        self.stale: list[VisibleSpan] = []
        self.invalid: Invalidation | None = None
        self.stale_before = 0  # deliveries whose `order` is lower are from before `invalid`
        self.total: int | None = None  # lines in the file, where its end was seen

    def add(self, visible: VisibleSpan) -> None:
        """Take in one more reference."""
        self.current.append(visible)
        mapped = visible.mapped
        if not mapped.first:
            self.loose.append(visible)
            return
        last = mapped.first + mapped.count - 1
        self.numbered.assign(mapped.first, last, visible)
        if mapped.eof:
            self.total = last

    def add_late(self, visible: VisibleSpan) -> None:
        """Take in a reference of a delivery whose text became known only now."""
        if self.is_stale(visible.delivery):
            self.stale.append(visible)
        else:
            self.add(visible)

    def invalidate(self, step: Invalidation, order: int) -> None:
        """All that was shown before the event at place `order` is of the file as it was."""
        self.invalid, self.stale_before = step, order
        if self.current:
            self.stale += self.current
            self.numbered, self.loose, self.current, self.total = SpanMap(), [], [], None

    def changed(self, change: Callable[[list[VisibleSpan]], list[VisibleSpan]]) -> KeyView:
        """A new view of the key, after `change` of its references, current and stale."""
        new = KeyView()
        new.stale, new.invalid, new.stale_before = change(self.stale), self.invalid, self.stale_before
        for visible in change(self.current):
            new.add(visible)
        return new

    def replaced(self, old: Delivery, new: list[VisibleSpan]) -> KeyView:
        """A new view of the key, with `new` in the place of the references to `old`."""

        def put(known: list[VisibleSpan]) -> list[VisibleSpan]:
            out: list[VisibleSpan] = []
            for visible in known:
                if visible.delivery is not old:
                    out.append(visible)
                elif not out or out[-1] not in new:
                    out += new
            return out

        return self.changed(put)

    def visible_spans(self) -> Iterator[VisibleSpan]:
        """All of them, current and stale, newest first."""
        return chain(reversed(self.current), reversed(self.stale))

    def is_stale(self, delivery: Delivery) -> bool:
        """True if the key was written, or seen changed, since `delivery`."""
        return delivery.order < self.stale_before
