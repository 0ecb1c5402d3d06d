"""A cache of the lines of deliveries. An agent goes back and forth between a few files, and splitting them takes
time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from readcache.core.model import text
from readcache.core.model.key_view import Delivery, VisibleSpan

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
