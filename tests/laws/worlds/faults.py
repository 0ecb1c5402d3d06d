"""Faults planted into the package, for random worlds to find: those of `tests/laws/mutants`, and others in the
handling of stores that fail, forks, rewinds and compactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Event, Forgot, Rewound
from readcache.core.model.view import View
from readcache.core.sync import compaction, rewrites
from readcache.log.log import Log
from readcache.log.reader import Reader
from readcache.session.conversation import Conversation
from readcache.session.session import Session
from tests.laws.mutants.mutants import MUTANTS, Mutant, Patch


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _raises_when_the_store_fails() -> list[Patch]:
    judge = Reader.judge

    def raising(self: Reader, *given: Any, **more: Any) -> Any:
        pending = judge(self, *given, **more)
        if pending.reply.reason.value == "store_failed":
            raise StoreError("the store")
        return pending

    return [(Reader, "judge", raising)]


def _forgets_what_it_could_not_store() -> list[Patch]:
    return [(Log, "append_later", _nothing)]


def _does_not_fold_what_waits() -> list[Patch]:
    def unfolded(self: Log, events: Iterable[Event]) -> None:
        self._distrusted = True
        for event in events:
            self._outbox.add(event)

    return [(Log, "append_later", unfolded)]


def _gives_up_the_view_too_early() -> list[Patch]:
    refresh = Log._refresh

    def early(self: Log) -> None:
        if self._distrusted:
            self._start_anew()
        refresh(self)

    return [(Log, "_refresh", early)]


def _knows_no_marker_without_the_log() -> list[Patch]:
    read = rewrites.LoggedMarkers._read

    def from_the_log_alone(self: Any, events: Any, tag: str) -> None:
        read(self, events if isinstance(events, list) else [], tag)

    return [(rewrites.LoggedMarkers, "_read", from_the_log_alone)]


def _a_fork_always_inherits() -> list[Patch]:
    fork = Session.fork

    def inheriting(self: Session, *given: Any, **more: Any) -> Session:
        return fork(self, *given, **{**more, "inherit": True})

    return [(Session, "fork", inheriting)]


def _rewound_only_by_one() -> list[Patch]:
    apply = View.apply

    def by_one(self: View, event: Event) -> None:
        if isinstance(event, Rewound):
            newest = [d.event.call_id for d in self.deliveries][-1:]
            event = Forgot(frozenset(newest) - {event.call_id})
        apply(self, event)

    return [(View, "apply", by_one)]


def _keeps_one_call_more() -> list[Patch]:
    make = compaction.compaction_events

    def more(view: View, kept: frozenset[str], *given: Any, **known: Any) -> Any:
        oldest = {delivery.event.call_id for delivery in view.deliveries[:1]}
        return make(view, kept | oldest, *given, **known)

    return [(compaction, "compaction_events", more)]


def _hears_of_one_compaction_for_each_summary() -> list[Patch]:
    return [(Conversation, "_lacks_calls", lambda *_: False)]


def _kept_calls_of_a_killed_process_keep_their_markers() -> list[Patch]:
    return [(compaction, "_retired", lambda *_: {})]


# The first three are not about the promise: a limit of our own, and numbers in front of lines, which the specification
# lets differ. The last one needs an output that quotes a marker and is quoted itself; the state machine finds it.
NOT_FOUND = (
    "the horizon is ignored",
    "a host may number lines as it likes",
    "raw lines stand for numbered ones without a word",
    "marker lines count as content",
)
FAULTS = (
    *(mutant for mutant in MUTANTS if mutant.name not in NOT_FOUND),
    Mutant("a call raises when the store fails", _raises_when_the_store_fails),
    Mutant("what could not be stored is forgotten", _forgets_what_it_could_not_store),
    Mutant("the view lacks what waits for the store", _does_not_fold_what_waits),
    Mutant("the view is given up before the log could be read", _gives_up_the_view_too_early),
    Mutant("markers are not known while the log cannot be read", _knows_no_marker_without_the_log),
    Mutant("a fork always starts with its parent's messages", _a_fork_always_inherits),
    Mutant("a rewind takes back one call", _rewound_only_by_one),
    Mutant("a compaction keeps one call more", _keeps_one_call_more),
    Mutant("a second compaction with the same summary is not told", _hears_of_one_compaction_for_each_summary),
    Mutant("a kept call of a killed process keeps its marker", _kept_calls_of_a_killed_process_keep_their_markers),
)
