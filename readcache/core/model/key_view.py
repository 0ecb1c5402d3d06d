"""The view of one key (a file's lines, see `claims`): which lines are visible, and since when they are stale.

`LineCache` keeps split lines: an agent goes back and forth between a few files, and splitting them takes time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from readcache.core.model import text
from readcache.core.model.events import Delivered, MappedSpan, Origin
from readcache.core.model.spans import SpanMap

# Characters. Shorter results are not looked up as a whole: two of the shortest markers are longer.
SHORTEST_IDENTICAL = 120


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A visible text: the event that delivered it. Compared by identity, because two events may be equal."""

    event: Delivered
    order: int = 0  # number of its event among all events of the view, from 1

    @property
    def call(self) -> int:
        """The number of its call, from 1."""
        return self.event.when.call

    def is_rendered_as(self, rendering: str) -> bool:
        """Return True if the text shows lines of files in this rendering, or if its rendering is not known."""
        return self.event.rendering in (rendering, "")

    @property
    def is_complete(self) -> bool:
        """True if a marker for an identical output may name the whole text as its source."""
        event = self.event
        is_output = event.origin is Origin.RESULT and not event.markers and event.credited
        return is_output and len(event.text) >= SHORTEST_IDENTICAL


@dataclass(frozen=True, slots=True, eq=False)
class VisibleSpan:
    """A mapped span of a visible delivery."""

    delivery: Delivery
    mapped: MappedSpan

    @property
    def event(self) -> Delivered:
        """The event that delivered the span."""
        return self.delivery.event


@dataclass(frozen=True, slots=True)
class Invalidation:
    """The cause that made older spans of a key stale. `written`: True for the agent's own write, made by the command
    `label`."""

    written: bool
    label: str = ""


class KeyView:
    """The visible spans of one key: a fold over what was shown of the file and what made that stale."""

    __slots__ = ("current", "invalid", "loose", "numbered", "stale", "stale_before", "total")

    def __init__(self) -> None:
        self.numbered: SpanMap[VisibleSpan] = SpanMap()
        self.loose: list[VisibleSpan] = []  # spans without known line numbers
        self.current: list[VisibleSpan] = []  # numbered and loose spans, oldest first
        self.stale: list[VisibleSpan] = []
        self.invalid: Invalidation | None = None
        self.stale_before = 0  # deliveries with a lower `order` came before `invalid`
        self.total: int | None = None  # number of lines in the file, if its end was seen

    def add(self, visible: VisibleSpan) -> None:
        """Add one more visible span."""
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
        """Add a span of a delivery whose text became known only now."""
        if self.is_stale(visible.delivery):
            self.stale.append(visible)
        else:
            self.add(visible)

    def invalidate(self, step: Invalidation, order: int) -> None:
        """Make all spans stale that were shown before event `order`: the file has changed since."""
        self.invalid, self.stale_before = step, order
        if self.current:
            self.stale += self.current
            self.numbered, self.loose, self.current, self.total = SpanMap(), [], [], None

    def changed(self, change: Callable[[list[VisibleSpan]], list[VisibleSpan]]) -> KeyView:
        """Return a new view of the key, with `change` applied to its spans, current and stale."""
        new = KeyView()
        new.stale, new.invalid, new.stale_before = change(self.stale), self.invalid, self.stale_before
        for visible in change(self.current):
            new.add(visible)
        return new

    def replaced(self, old: Delivery, new: list[VisibleSpan]) -> KeyView:
        """Return a new view of the key, in which `new` replaces the spans of `old`."""

        def put(known: list[VisibleSpan]) -> list[VisibleSpan]:
            out: list[VisibleSpan] = []
            for visible in known:
                if visible.delivery is not old:
                    out.append(visible)
                elif not out or out[-1] not in new:
                    out += new
            return out

        return self.changed(put)

    def numbered_in(self, rendering: str) -> SpanMap[VisibleSpan]:
        """Return the numbered spans of the current version in one rendering (`Delivery.is_rendered_as`)."""
        numbered: SpanMap[VisibleSpan] = SpanMap()
        for visible in self.current:
            if visible.mapped.first and visible.delivery.is_rendered_as(rendering):
                numbered.assign(visible.mapped.first, visible.mapped.first + visible.mapped.count - 1, visible)
        return numbered

    def visible_spans(self) -> Iterator[VisibleSpan]:
        """Return all spans, current before stale, each newest first."""
        return chain(reversed(self.current), reversed(self.stale))

    def is_stale(self, delivery: Delivery) -> bool:
        """Return True if the file was written, or seen to have changed, after `delivery`."""
        return delivery.order < self.stale_before


CACHED_LINES = 10_000  # enough for the few files that an agent reads in parts

Key = Delivery | tuple[Delivery, int, int, str | None]


class LineCache:
    """The lines that were requested last, up to `CACHED_LINES`."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, list[str]] = OrderedDict()
        self._count = 0

    def bodies(self, visible: VisibleSpan) -> list[str]:
        """Return the lines of the span without the numbers before them."""
        delivery, mapped = visible.delivery, visible.mapped
        # The text is split once for all its spans: the result of a search may have thousands.
        lines = self._remember(delivery, lambda: text.split_lines(delivery.event.text))
        if mapped.sep is None:
            is_all = mapped.at == 0 and mapped.count >= len(lines)
            return lines if is_all else lines[mapped.at : mapped.at + mapped.count]
        key = (delivery, mapped.at, mapped.count, mapped.sep)
        return self._remember(key, lambda: text.bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep))

    def clear(self) -> None:
        """Forget all deliveries, because some may no longer be visible."""
        self._kept.clear()
        self._count = 0

    def _remember(self, key: Key, make: Callable[[], list[str]]) -> list[str]:
        lines = self._kept.get(key)
        if lines is not None:
            self._kept.move_to_end(key)
            return lines
        lines = self._kept[key] = make()
        self._count += len(lines)
        while self._count > CACHED_LINES and len(self._kept) > 2:  # 2: a text, and its lines without numbers
            self._count -= len(self._kept.popitem(last=False)[1])
        return lines
