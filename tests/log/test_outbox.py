"""A store that fails at any moment: no event is lost that removes text from the view, and none is applied twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from readcache.core.model.call import command_call
from readcache.core.model.errors import StoreError
from readcache.core.model.events import (
    Compacted,
    Delivered,
    Event,
    Forgot,
    MarkerRecord,
    Missed,
    Moment,
    Record,
    Rewound,
)
from readcache.core.model.policy import Policy, Rules
from readcache.core.model.text import session_tag
from readcache.core.model.view import View
from readcache.core.shell.read import read_command
from readcache.log import log as log_module
from readcache.log.log import Log
from readcache.log.reader import Confirm, Reader
from readcache.log.store import StoreGone
from readcache.log.store.protocol import MemoryStore
from tests.helpers.files import TEXT

FILES = {name: TEXT.replace("line", name) for name in "fg"}


Step = tuple[str, str, tuple[int, bool, bool] | None]


class FickleStore(MemoryStore):
    """After N operations, each one fails until `heal`. Nothing remains of a transaction that failed."""

    def __init__(self) -> None:
        super().__init__()
        self._left: int | None = None
        self._error: Callable[[str], StoreError] = StoreError

    def break_after(self, operations: int, *, is_gone: bool) -> None:
        self._left, self._error = operations, StoreGone if is_gone else StoreError

    def heal(self) -> None:
        self._left = None

    def _operate(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise self._error("the store")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._operate()
        with super().transaction():
            yield
            self._operate()

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        self._operate()
        return super().append(session_id, agent_id, events, at)

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> list[Record]:
        self._operate()
        return super().records(session_id, agent_id, after=after)

    def records_about(self, session_id: str, agent_id: str, *_: Iterable[str]) -> list[Record]:
        self._operate()
        return super().records(session_id, agent_id)


class WatchedView(View):
    """A view that knows which events it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[Event] = []

    def apply(self, event: Event) -> None:
        self.applied.append(event)
        super().apply(event)


class World:
    """A reader, another process with the same reader, and what each of them did."""

    def __init__(self) -> None:
        self.store = FickleStore()
        self.reader, self.other = (Reader(self._log(), Rules(Policy(), session_tag("s"))) for _ in range(2))
        self.told: list[Event] = []  # what must not be lost
        self.shown: dict[str, str] = {}  # what can still be in view, by call
        self.numbers = count()

    def _log(self) -> Log:
        return Log(lambda: self.store, "s", "main", lambda: 0.0)

    def read(self, reader: Reader, name: str, *, one_call: bool = False) -> None:
        call_id, command = f"c{next(self.numbers)}", f"cat {name}"
        call = command_call(call_id, command, "/w", FILES[name], read_command(command, "/w"))
        who = Reader(reader.log, reader.rules, one_call=True) if one_call else reader
        reply = who.judge(call, confirm=Confirm.ALL).reply
        assert reply.full_text == FILES[name]
        # What one process has not been able to store, another cannot know.
        is_told = reader is self.reader or not self.reader.log._outbox.waiting
        for segment in reply.segments if is_told else ():
            assert set(getattr(segment, "sources", ())) <= self.shown.keys(), "it is no longer in view"
        self.shown[call_id] = reply.text

    def tell(self, reader: Reader, event: Event) -> None:
        reader.tell("", lambda _: [event])
        self.told.append(event)
        if isinstance(event, Compacted):
            self.shown.clear()
        elif isinstance(event, Forgot):
            for call_id in event.call_ids:
                self.shown.pop(call_id, None)
        elif isinstance(event, Rewound):
            names = list(self.shown)
            kept = names[: names.index(event.call_id) + 1] if event.call_id in names else []
            self.shown = {name: self.shown[name] for name in kept}

    def oldest(self) -> str:
        return next(iter(self.shown), "none")

    def do(self, what: str, name: str) -> None:
        reader = self.reader
        if what == "read":
            self.read(reader, name)
        elif what == "read as one call":
            self.read(reader, name, one_call=True)
        elif what == "another process reads":
            self.read(self.other, name)
        elif what == "another process tells":
            self.tell(self.other, Missed(1, "other"))
        elif what == "compact":
            self.tell(reader, Compacted(frozenset()))
        elif what == "forget":
            self.tell(reader, Forgot(frozenset([self.oldest()])))
        elif what == "rewind":
            self.tell(reader, Rewound(self.oldest()))
        elif what == "miss":
            self.tell(reader, Missed(1, "why"))
        elif what == "fail":
            reader.log.fail("", ValueError("a bug"))
            self.told.append(reader.log.unlogged()[-1])
        elif what == "be interrupted":
            with suppress(KeyboardInterrupt, StoreError), reader.log.transaction():
                reader.log.append([Missed(1, "never")])
                raise KeyboardInterrupt
        else:
            assert what == "fold"
            with suppress(StoreError):
                reader.log.fold(self.store)

    def check(self) -> None:
        """Check the invariant, also while the store fails."""
        for each in (self.reader, self.other):
            view = each.log.view
            assert isinstance(view, WatchedView)
            assert max(Counter(map(id, view.applied)).values(), default=0) <= 1, "an event was applied twice"
            have = set(map(id, view.applied))
            assert all(id(event) in have for event in each.log._outbox.waiting), "the view lacks what waits"
            assert not each.log._outbox.given
        assert {d.event.call_id for d in self.reader.view.deliveries if d.event.text} <= self.shown.keys()

    def check_in_the_end(self) -> None:
        """Check what is stored and what is in view when the store works again."""
        self.store.heal()
        for each in (self.reader, self.other):
            assert each.view is each.log.view
            assert not each.log.unlogged()
        self.check()
        stored = Counter(id(record.event) for record in self.store.records("s"))
        assert [stored[id(event)] for event in self.told] == [1] * len(self.told)
        fresh = Reader(self._log(), self.reader.rules)
        for each in (self.reader, self.other):
            assert [d.event for d in each.view.deliveries] == [d.event for d in fresh.view.deliveries]
            assert each.view.calls.counts == fresh.view.calls.counts


OURS = ("read", "read as one call", "compact", "forget", "rewind", "miss", "fail", "fold", "be interrupted")
STEPS = st.tuples(
    st.sampled_from((*OURS, "another process reads", "another process tells")),
    st.sampled_from("fg"),
    st.none() | st.tuples(st.integers(0, 6), st.booleans(), st.booleans()),  # operations before it; is gone; lasts
)


@given(st.lists(STEPS, max_size=20))
@example([("read", "f", None), ("compact", "f", (2, False, False)), ("read", "f", None)])
@example([("read as one call", "f", (3, False, False)), ("miss", "f", None), ("read", "f", None)])
@example([("miss", "f", (1, False, True)), ("read as one call", "f", None)])
@example([("read", "f", None), ("be interrupted", "f", None)])
@example([("read", "f", None), ("compact", "f", (0, False, False)), ("another process reads", "f", None)])
def test_nothing_is_lost_and_nothing_is_applied_twice(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_module, "View", WatchedView)
        world = World()
        for what, name, failure in steps:
            if failure is not None:
                world.store.break_after(failure[0], is_gone=failure[1])
            world.do(what, name)
            world.check()
            if failure is not None and not failure[2]:
                world.store.heal()
        world.check_in_the_end()


@pytest.mark.parametrize("fails_after", range(5))
def test_the_markers_of_a_fork_are_stored_without_lines_if_the_store_fails(fails_after: int) -> None:
    world = World()
    marker = Delivered("c1", TEXT, "cat f", markers=(MarkerRecord(0, None, 1, 9, ("c0",)),), when=Moment(1))
    world.store.break_after(fails_after, is_gone=False)
    world.reader.tell("", lambda _: [marker])
    assert world.reader.log.view.is_visible("c1")
    world.store.heal()
    assert [d.event.markers for d in world.reader.view.of_call("c1")] == [marker.markers]
