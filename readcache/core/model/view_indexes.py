"""Two indexes of the view: the results by their whole text, and the newest writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from readcache.core.model.key_view import Delivery, Invalidation
from readcache.core.model.text import digest
from readcache.core.model.writes import concerns

MOST_STEPS = 64  # writes and changes; nothing visible depends on them


class IdenticalOutputs:
    """The newest visible result with each text. It contains only results that a marker may name as a whole."""

    def __init__(self) -> None:
        self._newest: dict[str, Delivery] = {}

    def find(self, digest: str) -> Delivery | None:
        """Return the result whose text has this digest; None if there is none."""
        return self._newest.get(digest)

    def add(self, delivery: Delivery) -> None:
        """Add a visible delivery."""
        if delivery.is_complete:
            self._newest[digest(delivery.event.text)] = delivery

    def drop(self, delivery: Delivery) -> None:
        """Remove a delivery that is no longer visible."""
        if delivery.is_complete and self.find(name := digest(delivery.event.text)) is delivery:
            del self._newest[name]


class Steps:
    """The newest writes and changes, for the files of texts that have not reached the reader yet."""

    def __init__(self) -> None:
        self._newest: deque[tuple[tuple[str, ...], Invalidation, int]] = deque(maxlen=MOST_STEPS)

    def add(self, written: tuple[str, ...], step: Invalidation, order: int) -> None:
        """Add a step that made older spans of the files `written` stale. `order`: the number of its event in the
        log."""
        self._newest.append((written, step, order))

    def since(self, order: int, key: str) -> Iterator[tuple[Invalidation, int]]:
        """Yield each step after event `order` that concerns the file of `key`, and the number of its event."""
        for written, step, at in self._newest:
            if at > order and any(concerns(one, key) for one in written):
                yield step, at
