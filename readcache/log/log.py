"""One reader's log and view, kept in step with a store that other processes write too.

    with log.transaction() as view:      # the store's newest events are folded in; nobody else writes meanwhile
        log.append([event, ...])         # stored and folded

After any failure of the store the view is folded again from the log before it is used, so that it never has what the
log does not. Events that remove something from the view must not get lost on the way: they wait in an `Outbox` until
the store takes them, and until then no transaction begins.
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
    Closed,
    Compacted,
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
from readcache.log.store.open import is_url

# How many recent texts keep a visibility time. If more arrive while a command runs, none may be its source: nothing
# is a source for it.
LATELY = 256

Instant = tuple[float, int]  # by the log's clock, and by the number of texts that this process had logged
Position = tuple[Store, int]  # a log's end: its store, and the number of the last record there that was folded


class Outbox:
    """Events that must reach the store and are not known to be there, oldest first. `waiting` is for the next
    transaction; the open transaction has stored `given`.

    Invariant: the view has each of them exactly once. An event leaves when a transaction that stored it is committed.
    """

    def __init__(self) -> None:
        self.waiting: list[Event] = []
        self.given: list[Event] = []

    def add(self, event: Event) -> None:
        """Let an event wait that the view has. Text that was shown does not wait: others may write its files in the
        meantime, and it would count as shown after that. Only the markers of a fork do, without any file's lines, so
        that they can be rewritten."""
        if not isinstance(event, Delivered):
            self.waiting.append(event)
        elif event.markers:
            self.waiting.append(replace(event, source_map=()))

    def take(self) -> list[Event]:
        """Remove and return what waits. The view no longer has it."""
        taken, self.waiting = self.waiting, []
        return taken

    def roll_back(self) -> None:
        """Let events wait that were stored in a transaction that failed."""
        again, self.given = [*self.given, *self.take()], []
        for event in again:
            self.add(event)


class Log:
    """The log of one reader in one store. `open_store` is tried again while it fails."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        session_id: str,
        agent_id: str,
        clock: Callable[[], float],
    ) -> None:
        self.lock = ForkLock(LOGS)
        self.view = View()
        self.session_id = session_id
        self.agent_id = agent_id
        self.clock = clock
        self._open_store = open_store
        self._store: Store | None = None
        # (when it was logged, which of this process's texts it is, the number of the last call whose text could be seen
        # before it); of what others logged, 0
        self._lately: deque[tuple[float, int, int]] = deque(maxlen=LATELY)
        self._logged = 0  # texts that this process logged
        self._seq = 0
        self._partial = False
        self._distrusted = False
        self._outbox = Outbox()
        self._index: LineIndex | None = None

    @property
    def store(self) -> Store:
        """The open store. Raises StoreError."""
        with self.lock:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def open(self) -> None:
        """Opens the store. A failure is counted; every call tries again, and until one succeeds everything is shown."""
        try:
            _warn_if_unreachable(self.store, self.session_id)
        except StoreError as error:
            self.fail("", error)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[View]:
        """A transaction of the store, with everything newer folded in. Raises StoreError when the store fails, at entry
        or at the end."""
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
        """Store and fold events, within a transaction. `at`: when they happened, by the log's clock; None for now.
        `keep`: if they cannot be stored, do with them as `append_later` does."""
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
        """Have events stored by the next transaction: the store would not take them now. The view has them immediately:
        a compaction that could not be stored is a compaction all the same."""
        with self.lock:
            self._distrusted = True
            for event in map(_storable, events):
                self._fold(event, self.clock(), is_own=True)
                self._outbox.add(event)

    def fail(self, call_id: str, error: BaseException) -> Reason:
        """Counts a failure of ours, and logs it as soon as the store takes it. Gives the reason that stands for it."""
        reason = Reason.STORE_FAILED if isinstance(error, StoreError) else Reason.INTERNAL_ERROR
        self.append_later([Failed(str(call_id), reason.value, without_secrets(f"{type(error).__name__}: {error}"))])
        return reason

    def unlogged(self) -> list[Failed]:
        """Failures of ours that the store has not taken."""
        with self.lock:
            return [event for event in self._outbox.waiting if isinstance(event, Failed)]

    def begin_about(self, keys: Iterable[str], digests: Iterable[str]) -> None:
        """Where the log was not folded yet, for one call: the view starts with what matters to these keys and digests
        alone."""
        with self.lock:
            if (self._seq == 0 or self._partial) and not self._outbox.waiting:
                self._start_anew()
                self._partial = True
                for record in self.store.records_about(self.session_id, self.agent_id, keys, digests):
                    self._take(record)

    def fold(self, store: Store) -> None:
        """Folds all that is in `store`, which is this log's by another connection. Writers, and users of this log, need
        not wait for that. Raises StoreError."""
        aside = Log(lambda: store, self.session_id, self.agent_id, self.clock)
        for record in store.records(self.session_id, self.agent_id):
            aside._take(record)
        with self.lock:
            if not self._outbox.waiting:  # with these, the next transaction folds all
                self.view, self._lately, self._seq, self._index = aside.view, aside._lately, aside._seq, None
                self._partial = False

    def position(self) -> Position:
        """The end of the log. Within a transaction."""
        return self.store, self._seq

    def only_grew_since(self, position: Position) -> bool:
        """True if nothing was logged since that may have outdated or removed an older text. Within a transaction."""
        store, seq = position
        if store is not self._store:
            return False
        records = store.records(self.session_id, self.agent_id, after=seq) if seq != self._seq else []
        events = (event_for(record, self.agent_id) for record in records)
        return all(event is None or isinstance(event, (Closed, Delivered, Failed, Missed, Amended)) for event in events)

    def now(self) -> Instant:
        """Return the moment at which a call begins. Ask before anything that may wait: the store, a lock."""
        logged = self._logged  # first: what comes while the clock is read came later
        return self.clock(), logged

    def calls_at(self, moment: float, logged: int | None = None) -> int:
        """Return the number of the last call that was visible at that moment, by the log's clock. Within a transaction.
        `logged`: how many texts this process had logged then, which says more than any clock; None: not known."""
        number = self.view.calls.number
        is_certain = logged in (None, self._logged)  # no text of this process came since: the clock goes for all
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
        """The whole session's log, each text where it was delivered. Raises StoreError."""
        return as_shown(self.store.records(self.session_id))

    def own_events(self) -> list[Event]:
        """What happened to this reader so far; nothing where the store fails."""
        try:
            return list(events_for(self.records(), self.agent_id))
        except StoreError:  # counted when the next event is logged
            return []

    def texts(self) -> list[Event]:
        """The session's events with each text that there was, this reader's last: another one's call may have the same
        id. Raises StoreError."""
        records = sorted(self.store.records(self.session_id), key=lambda record: record.agent_id == self.agent_id)
        return [record.event for record in records]

    def store_key(self) -> tuple[str, str, str] | None:
        """The reader's place on the disk: store, session, reader. None for a store that ends with this process."""
        path = getattr(self._store, "path", None)
        return None if path is None else (str(path), self.session_id, self.agent_id)

    def call_ids(self) -> list[str]:
        """The ids of the session's calls in the log, oldest first; some there more than once. Of all its readers: a
        sub-agent may have started with a copy of another's messages. Raises StoreError."""
        records = self.store.records(self.session_id)
        return [call_id for record in records if (call_id := getattr(record.event, "call_id", ""))]

    def line_index(self) -> LineIndex:
        """Where any visible line stands."""
        if self._index is None:
            self._index = LineIndex(self.view.deliveries)
        return self._index

    def prepare_index(self) -> None:
        """Does now what the next judgement would have to do first, where anybody has asked for the index."""
        with self.lock:
            if self._index is not None:
                self._index.take_in()

    def new_reader(self, name: str, taken: set[str]) -> str:
        """`name`, or the first of `name-2`, `name-3`, … that no reader of the session has used, as far as the store and
        `taken` know. The name is then taken."""
        with contextlib.suppress(StoreError):  # counted when the reader is used
            taken.update(agent for _, agent, *_ in self.store.sessions(self.session_id))
        names = (name if n == 1 else f"{name}-{n}" for n in itertools.count(1))
        found = next(candidate for candidate in names if candidate not in taken)
        taken.add(found)
        return found

    def close(self) -> None:
        """Closes the store."""
        if self._store is not None:
            self._store.close()

    def _refresh(self) -> None:
        """Fold what is new in the store. Then store what waits for it."""
        records = self.store.records(self.session_id, self.agent_id, after=0 if self._distrusted else self._seq)
        if self._distrusted:
            records = list(records)  # until all is read, the old view is better than none
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
        """A text can be seen from now on, or another one than before. `before`: the number of the last call then."""
        self._logged += is_own
        texts = [text for text in self.view.of_call(event.call_id) if text.event.origin is event.origin]
        # a call that was answered long ago may be settled now; of one that wrote, the write was logged first
        before = min([before, *(text.call - 1 for text in texts)])
        latest = self._lately[-1][0] if self._lately else at
        own = self._logged if is_own else 0
        self._lately.append(
            (max(at, latest), own, before)
        )  # in order, whatever the clock does: later is on the safe side
        if self._index is not None:
            for text in texts:
                self._index.add(text)


_unreachable: set[str] = set()  # the servers that this process was warned of


def _warn_if_unreachable(store: Store, session_id: str) -> None:
    """Once for each server: nothing else would tell a program why everything is shown."""
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
    """The event, or what may stand for one that no store takes: it would stop all that comes after it."""
    if is_storable(event):
        return event
    if isinstance(event, (Delivered, Wrote, Failed)):
        return Failed("", Reason.INTERNAL_ERROR.value, f"a {type(event).__name__} that cannot be stored")
    return Compacted(frozenset())  # what it takes out of view is not known
