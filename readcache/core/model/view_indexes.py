"""Three indexes of the view: keys by name, results by their whole text, and the newest writes.

Keys are found by name for the files of a write or a glob, and for files of the same name.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator

from readcache.core.model.claims import common_prefix, concerns, file_name_of
from readcache.core.model.key_view import Delivery, Invalidation
from readcache.core.model.text import digest

# Fewer new keys than this are inserted one by one. More are sorted together, which takes a pass over all keys.
FEW_KEYS = 100
# The maximum number of files of one name to search, so that a call's cost does not grow with the session.
MOST_NAMESAKES = 48


class KeyNames:
    """A set of keys. `add` is cheap: keys are sorted only at the next look-up."""

    def __init__(self) -> None:
        self._sorted: list[str] = []
        self._new: list[str] = []
        self._by_name: dict[str, list[str]] = {}

    def add(self, key: str) -> None:
        """Add a key that is not in the set yet."""
        self._new.append(key)
        self._by_name.setdefault(_name(key), []).append(key)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove keys that are in the set."""
        gone = set(keys)
        if not gone:
            return
        self._sort()
        self._sorted = [key for key in self._sorted if key not in gone]
        for name in set(map(_name, gone)):
            self._by_name[name] = [key for key in self._by_name[name] if key not in gone]

    def beginning_with(self, prefix: str) -> list[str]:
        """Return the keys that begin with `prefix`, sorted."""
        self._sort()
        low = bisect_left(self._sorted, prefix)
        return self._sorted[low : bisect_left(self._sorted, prefix + "\U0010ffff", low)]

    def namesakes(self, key: str) -> list[str]:
        """Return the keys that end in the same file name, newest first, at most `MOST_NAMESAKES`."""
        return self._by_name.get(_name(key), [])[: -MOST_NAMESAKES - 1 : -1]

    def concerned_by(self, written: str) -> list[str]:
        """Return the keys of the files that a write to `written` concerns."""
        name = file_name_of(written)
        known = self.beginning_with(common_prefix(written)) if name is None else self._by_name.get(name, [])
        return [key for key in known if concerns(written, key)]

    def _sort(self) -> None:
        if len(self._new) < FEW_KEYS:
            for key in self._new:
                insort(self._sorted, key)
        else:
            self._sorted += self._new
            self._sorted.sort()
        self._new.clear()


def _name(key: str) -> str:
    return key.rsplit("/", 1)[-1]


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
