"""The keys that a view has seen, sorted and by file name. They serve to find the files of a write or a glob, and files
of the same name."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from readcache.core.model.writes import common_prefix, concerns, file_name_of

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
