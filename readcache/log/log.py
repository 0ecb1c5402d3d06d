"""Keep one reader's log and view in step with a store that other processes write, too.

    with log.transaction() as view:      # folds in the store's newest events; other writers wait
        log.append([event, ...])         # stores and folds them

After a failure of the store, the view is folded again from the log before it is used. So it never has an event that the
log lacks. Events that remove something from the view must not get lost. They wait in an `Outbox` until the store takes
them: the next transaction stores them first, and fails if it cannot.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from readcache.core.judging.line_index import LineIndex
from readcache.core.model.errors import StoreError
from readcache.core.model.events import (
    Amended,
    Cleared,
    Closed,
    Compacted,
    Condensed,
    Delivered,
    Event,
    Failed,
    Forgot,
    Missed,
    Record,
    Rewound,
    Wrote,
)
from readcache.core.model.records import event_for, events_for
from readcache.core.model.reply import Reason
from readcache.core.model.secrets import without_secrets
from readcache.core.model.unconfirmed import as_shown
from readcache.core.model.view import View
from readcache.log.forks import LOGS, ForkLock
from readcache.log.store import Store, StoreGone
from readcache.log.store.codec import is_storable
from readcache.log.store.protocol import is_url

# How many recent texts keep the time at which they became visible. If more arrive while a command runs, nothing is a
# source for that command.
LATELY = 256

Instant = tuple[float, int]  # seconds by the log's clock, and the number of texts that this process had logged
Position = tuple[Store, int]  # a log's end: its store, and the seq of the last record there that was folded


class Outbox:
    """Events that must reach the store but may not be there yet, oldest first. The next transaction stores `waiting`.
    The open transaction has stored `given`.

    Invariant: the view has each event exactly once. An event leaves when the transaction that stored it is committed.
    """

    def __init__(self) -> None:
        self.waiting: list[Event] = []
        self.given: list[Event] = []

    def add(self, event: Event) -> None:
        """Add to `waiting` an event that the view has already. A delivery loses its source map. A delivery without
        markers is dropped."""
        if not isinstance(event, Delivered):
            self.waiting.append(event)
        # Other agents may write a text's files while it waits, and it would then count as shown after those writes.
        # The markers of a fork are kept, without any file's lines, so that they can be rewritten.
        elif event.markers:
            self.waiting.append(replace(event, source_map=()))

    def take(self) -> list[Event]:
        """Remove and return the waiting events. The view no longer has them."""
        taken, self.waiting = self.waiting, []
        return taken

    def roll_back(self) -> None:
        """Move the events of a failed transaction back to `waiting`, before the events that wait already."""
        again, self.given = [*self.given, *self.take()], []
        for event in again:
            self.add(event)


class Log:
    """The log of one reader in one store, and its view. If `open_store` fails, the next use tries it again."""

    def __init__(
        self, open_store: Callable[[], Store], session_id: str, agent_id: str, clock: Callable[[], float]
    ) -> None:
        self.lock = ForkLock(LOGS)
        self.view = View()
        self.session_id = session_id
        self.agent_id = agent_id
        self.clock = clock
        self._open_store = open_store
        self._store: Store | None = None
        # Recent texts: (when it was logged, its number among this process's texts or 0 if another process logged it,
        # the number of the last call that was visible before it)
        self._lately: deque[tuple[float, int, int]] = deque(maxlen=LATELY)
        self._logged = 0  # texts that this process logged
        self._seq = 0
        self._partial = False
        self._distrusted = False
        self._outbox = Outbox()
        self._index: LineIndex | None = None

    @property
    def store(self) -> Store:
        """The open store. Raise StoreError if it cannot be opened."""
        with self.lock:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def open(self) -> None:
        """Open the store. A failure is counted, and each call tries again. Until one succeeds, everything is shown."""
        try:
            _warn_if_unreachable(self.store, self.session_id)
        except StoreError as error:
            self.fail("", error)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[View]:
        """Yield the view within a transaction of the store, with all newer events folded in. Raise StoreError if the
        store fails, at entry or at the end."""
        with self.lock:
            try:
                with self.store.transaction():
                    self._refresh()
                    yield self.view
            except BaseException as error:
                self._distrusted = True
                self._outbox.roll_back()
                if isinstance(error, StoreGone):
                    self._store = None
                raise
            self._outbox.given = []

    def append(self, events: Sequence[Event], at: float | None = None, *, keep: bool = False) -> None:
        """Store and fold events, within a transaction. `at`: when they happened, in seconds by the log's clock; None
        for now. `keep`: if they cannot be stored, keep them as `append_later` does. The error is raised in any
        case."""
        if not events:
            return
        at = self.clock() if at is None else at
        try:
            self._seq = self.store.append(self.session_id, self.agent_id, events, at)
        except BaseException:
            self.append_later(events if keep else ())
            raise
        if keep:
            self._outbox.given += events
        for event in events:
            self._fold(event, at, is_own=True)

    def append_later(self, events: Iterable[Event]) -> None:
        """Keep events for the next transaction, because the store fails now. The view has them immediately: a
        compaction that could not be stored still happened."""
        with self.lock:
            self._distrusted = True
            for event in map(_storable, events):
                self._fold(event, self.clock(), is_own=True)
                self._outbox.add(event)

    def fail(self, call_id: str, error: BaseException) -> Reason:
        """Count a failure of readcache, and log it as soon as the store takes it. Return the reason to report:
        STORE_FAILED for a StoreError, INTERNAL_ERROR for any other error."""
        reason = Reason.STORE_FAILED if isinstance(error, StoreError) else Reason.INTERNAL_ERROR
        self.append_later([Failed(str(call_id), reason.value, without_secrets(f"{type(error).__name__}: {error}"))])
        return reason

    def unlogged(self) -> list[Failed]:
        """Return the failures of readcache that the store has not taken yet."""
        with self.lock:
            return [event for event in self._outbox.waiting if isinstance(event, Failed)]

    def begin_about(self, keys: Iterable[str], digests: Iterable[str]) -> None:
        """Fold only the records that can matter to these keys and digests, for one call. Do nothing if the whole log
        is folded already, or if events wait for the store. Raise StoreError."""
        with self.lock:
            if (self._seq == 0 or self._partial) and not self._outbox.waiting:
                self._start_anew()
                self._partial = True
                for record in self.store.records_about(self.session_id, self.agent_id, keys, digests):
                    self._take(record)

    def fold(self, store: Store) -> None:
        """Fold the whole log from `store`, a second connection to this log's store. Writers and users of this log do
        not wait for it. Raise StoreError."""
        aside = Log(lambda: store, self.session_id, self.agent_id, self.clock)
        for record in store.records(self.session_id, self.agent_id):
            aside._take(record)
        with self.lock:
            if not self._outbox.waiting:  # otherwise the next transaction folds everything
                self.view, self._lately, self._seq, self._index = aside.view, aside._lately, aside._seq, None
                self._partial = False

    def position(self) -> Position:
        """Return the end of the log. Call it within a transaction."""
        return self.store, self._seq

    def only_grew_since(self, position: Position) -> bool:
        """Return True if no event since `position` may have outdated or removed an older text. Return False if the
        store is another one. Call it within a transaction."""
        store, seq = position
        if store is not self._store:
            return False
        records = store.records(self.session_id, self.agent_id, after=seq) if seq != self._seq else []
        events = (event_for(record, self.agent_id) for record in records)
        harmless = (Amended, Cleared, Closed, Condensed, Delivered, Failed, Missed)
        return all(event is None or isinstance(event, harmless) for event in events)

    def now(self) -> Instant:
        """Return the moment at which a call begins. Call it before anything that may wait, such as a store or lock."""
        logged = self._logged  # read first: a text that arrives while the clock is read counts as later
        return self.clock(), logged

    def calls_at(self, moment: float, logged: int | None = None) -> int:
        """Return the number of the last call that was visible at `moment`, in seconds by the log's clock. Return 0 if
        so many texts came since then that it is unknown. Call it within a transaction. `logged`: how many texts this
        process had logged then, which is more reliable than a clock; None if unknown."""
        number = self.view.calls.number
        is_certain = logged in (None, self._logged)  # this process logged no text since, so the clock decides for all
        for at, own, before in reversed(self._lately):
            if own and logged is not None:
                if own <= logged:
                    return number
            elif at <= moment:
                if is_certain:
                    return number
                continue
            number = min(number, before)
        if len(self._lately) < LATELY:
            return number
        at, own, _ = self._lately[0]
        return number if not own and at <= moment else 0

    def records(self) -> list[Record]:
        """Return the whole session's log, with each text in the event that delivered it. Raise StoreError."""
        return as_shown(self.store.records(self.session_id))

    def own_events(self) -> list[Event]:
        """Return this reader's events so far, or an empty list if the store fails."""
        try:
            return list(events_for(self.records(), self.agent_id))
        except StoreError:  # counted when the next event is logged
            return []

    def texts(self) -> list[Event]:
        """Return the session's events, with every version of a text. This reader's events come last, because another
        reader's call may have the same ID. Raise StoreError."""
        records = sorted(self.store.records(self.session_id), key=lambda record: record.agent_id == self.agent_id)
        return [record.event for record in records]

    def store_key(self) -> tuple[str, str, str] | None:
        """Return (store, session, reader), which identify the reader's log on the disk. Return None for a store that
        ends with this process."""
        path = getattr(self._store, "path", None)
        return None if path is None else (str(path), self.session_id, self.agent_id)

    def call_ids(self) -> list[str]:
        """Return the IDs of the session's calls in the log, oldest first. Some occur more than once. The calls of all
        readers are included, because a sub-agent may have started with a copy of another reader's messages. Raise
        StoreError."""
        records = self.store.records(self.session_id)
        return [call_id for record in records if (call_id := getattr(record.event, "call_id", ""))]

    def line_index(self) -> LineIndex:
        """Return the index that finds any visible line by its text."""
        if self._index is None:
            self._index = LineIndex(self.view.deliveries)
        return self._index

    def prepare_index(self) -> None:
        """Index the new deliveries now, so that the next judgement need not. Do nothing if no judgement has used the
        index."""
        with self.lock:
            if self._index is not None:
                self._index.take_in()

    def new_reader(self, name: str, taken: set[str]) -> str:
        """Return `name`, or the first free name of `name-2`, `name-3`, …, and add it to `taken`. A name is free if no
        reader of the session has it in the store or in `taken`. If the store cannot be read, only `taken` counts."""
        with contextlib.suppress(StoreError):  # counted when the reader is used
            taken.update(agent for _, agent, *_ in self.store.sessions(self.session_id))
        names = (name if n == 1 else f"{name}-{n}" for n in itertools.count(1))
        found = next(candidate for candidate in names if candidate not in taken)
        taken.add(found)
        return found

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()

    def _refresh(self) -> None:
        """Fold the store's new events. Then store the events that wait for it."""
        records = self.store.records(self.session_id, self.agent_id, after=0 if self._distrusted else self._seq)
        if self._distrusted:
            records = list(records)  # if reading fails, the old view is better than none
            self._start_anew()
        for record in records:
            self._take(record)
        self.append(self._outbox.take(), keep=True)

    def _start_anew(self) -> None:
        self.view, self._seq, self._index = View(), 0, None
        self._partial = self._distrusted = False
        self._lately.clear()

    def _take(self, record: Record) -> None:
        event = event_for(record, self.agent_id)
        if event is not None:
            self._fold(event, record.at, is_own=False)
            self._seq = record.seq

    def _fold(self, event: Event, at: float, *, is_own: bool) -> None:
        view, before = self.view, self.view.calls.number
        replaced_it = isinstance(event, Amended) and any(
            old.event.text for old in view.of_call(event.call_id) if old.event.origin is event.origin
        )
        view.apply(event)
        if isinstance(event, (Compacted, Forgot, Rewound)) or replaced_it:
            self._index = None
        if isinstance(event, (Delivered, Amended)):
            self._note_text(event, at, before, is_own=is_own)

    def _note_text(self, event: Delivered | Amended, at: float, before: int, *, is_own: bool) -> None:
        """Record that a text is visible from now on, or was replaced. `before`: the number of the last call before
        the event."""
        self._logged += is_own
        texts = [text for text in self.view.of_call(event.call_id) if text.event.origin is event.origin]
        # The event may amend a call that was answered long ago. If a call wrote files, its write was logged first.
        before = min([before, *(text.call - 1 for text in texts)])
        latest = self._lately[-1][0] if self._lately else at
        own = self._logged if is_own else 0
        # In order, even if the clock goes back: a later time is on the safe side.
        self._lately.append((max(at, latest), own, before))
        if self._index is not None:
            for text in texts:
                self._index.add(text)


_unreachable: set[str] = set()  # the servers for which this process has logged a warning


def _warn_if_unreachable(store: Store, session_id: str) -> None:
    """Log a warning if the store's server cannot be reached, once for each server. Nothing else would tell a program
    why every output is shown in full."""
    path = str(getattr(store, "path", ""))
    if not is_url(path):
        return
    try:
        store.sessions(session_id)
    except StoreError as error:
        if path not in _unreachable:
            _unreachable.add(path)
            import logging  # the server's client has imported it

            logging.getLogger("readcache").warning("%s. Meanwhile every output is shown in full", error)


def _storable(event: Event) -> Event:
    """Return the event, or a replacement if no store can take it. Such an event would block all later events."""
    if is_storable(event):
        return event
    if isinstance(event, (Delivered, Wrote, Failed)):
        return Failed("", Reason.INTERNAL_ERROR.value, f"a {type(event).__name__} that cannot be stored")
    return Compacted(frozenset())  # it is unknown which texts the event removes from the view
