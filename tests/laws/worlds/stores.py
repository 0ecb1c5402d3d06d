"""A store that fails on purpose: it vanishes for a while, or the process dies while it is in use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Event, Record
from readcache.log.store.protocol import Store


class Died(BaseException):
    """The process ends here; nothing in it may go on."""


class Operations:
    """Counts what is done with the store of one process. `dies_at`: the operation, counted from now, that it does not
    survive. `is_gone`: each operation fails, as with a server that cannot be reached; `goes_in`: after so many.
    `every`: one of so many fails; 0: none."""

    def __init__(self) -> None:
        self.dies_at: int | None = None
        self.is_gone = False
        self.goes_in: int | None = None
        self.every = self.done = 0

    @property
    def fail(self) -> bool:
        """True while an operation may fail."""
        return self.is_gone or self.every > 0

    def next(self) -> None:
        """Raises Died or StoreError."""
        if self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at < 0:
                self.dies_at = None
                raise Died
        if self.goes_in is not None:
            self.goes_in -= 1
            self.is_gone = self.is_gone or self.goes_in < 0
        self.done += 1
        if self.is_gone or (self.every and self.done % self.every == 0):
            raise StoreError("the server cannot be reached")


class FailingStore(Store):
    """`inner`, which outlives every process. A transaction may fail before it, in it, before its end, and when its end
    is done: then nobody is told that it is."""

    def __init__(self, inner: Store, operations: Operations, path: str | None = None) -> None:
        self._inner, self._operations = inner, operations
        self.path = path  # of one that outlives a process

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`."""
        self._operations.next()
        with self._inner.transaction():
            yield
            self._operations.next()
        self._operations.next()

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """See `Store.append`."""
        self._operations.next()
        return self._inner.append(session_id, agent_id, events, at)

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> Iterable[Record]:
        """See `Store.records`."""
        self._operations.next()
        return self._inner.records(session_id, agent_id, after=after)

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> Iterable[Record]:
        """See `Store.records_about`."""
        self._operations.next()
        return self._inner.records_about(session_id, agent_id, keys, digests)

    def sessions(self, session_id: str | None = None) -> Iterable[tuple[str, str, int, float]]:
        """See `Store.sessions`."""
        self._operations.next()
        return self._inner.sessions(session_id)

    def drop(self, session_id: str) -> None:
        """See `Store.drop`."""
        self._operations.next()
        self._inner.drop(session_id)

    def close(self) -> None:
        """The process is done with it; what is in it stays."""
