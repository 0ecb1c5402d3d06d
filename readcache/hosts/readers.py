"""The readers that an adapter has open."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

MOST = 256  # at once; the next request of one that was ended shows every line again


class _Reader(Protocol):
    def stats(self) -> Mapping[str, int]:
        """See `Session.stats`."""

    def close(self) -> None:
        """See `Session.close`."""


R = TypeVar("R", bound=_Reader)


class Readers(Generic[R]):
    """The readers that an adapter has open, `MOST` at once, and the counters of all that it ever had. Beyond that, the
    one unused for longest is ended. Safe to call from any thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._open: dict[Hashable, R] = {}  # the newest is last
        self._ended: Counter[str] = Counter()

    def __deepcopy__(self, memo: object) -> Readers[R]:
        """A copy of an adapter begins without readers."""
        return Readers()

    def __iter__(self) -> Iterator[R]:
        """The newest first."""
        with self.lock:
            return iter(list(self._open.values())[::-1])

    def get(self, key: Hashable, make: Callable[[], R]) -> R:
        """The reader of that key: the one that is there, or the one that `make` gives."""
        with self.lock:
            reader = self._open[key] = self._open.pop(key, None) or make()
            if len(self._open) > MOST:
                self._end(next(iter(self._open)))
            return reader

    def stats(self) -> dict[str, int]:
        """The counters of `Session.stats`, summed over all readers."""
        with self.lock:
            counts = Counter(self._ended)
            for reader in self._open.values():
                counts.update(reader.stats())
        return dict(sorted(counts.items()))

    def close(self) -> None:
        """Ends every reader."""
        with self.lock:
            while self._open:
                self._end(next(iter(self._open)))

    def _end(self, key: Hashable) -> None:
        reader = self._open.pop(key)
        self._ended.update(reader.stats())
        reader.close()
