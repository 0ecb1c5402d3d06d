"""The package, broken in one named way at a time.

Each mutant replaces functions of the package in this process; `with` puts them back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from readcache.core.judging import judge, marker, omissions, replacements, search
from readcache.core.judging.judge import is_retry
from readcache.core.judging.search import Sources
from readcache.core.model.call import Call
from readcache.core.model.events import Amended, Compacted, Event, Forgot, Origin, Record, Rewound, SourceSpan, Wrote
from readcache.core.model.policy import Policy, Rules
from readcache.core.model.view import View
from readcache.core.sync import amend, compaction, repair, sync
from readcache.core.sync.repair import stale_markers
from readcache.log import log, reader

Patch = tuple[Any, str, Any]
_FOLD = log.Log._fold


@dataclass(frozen=True)
class Mutant:
    """What is broken, how, and the policies of the state machine under which it must show."""

    name: str
    patches: Callable[[], list[Patch]]
    policy: str = "default"


@contextlib.contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The package with this fault in it."""
    patches = mutant.patches()
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
    try:
        for owner, name, new in patches:
            setattr(owner, name, new)
        yield
    finally:
        for owner, name, old in before:
            setattr(owner, name, old)


def _deaf_to(kind: type) -> Callable[[], list[Patch]]:
    """The view takes no notice of one kind of event."""

    def patches() -> list[Patch]:
        apply = View.apply

        def deaf(self: View, event: Event) -> None:
            if isinstance(event, kind):
                if isinstance(event, Wrote) and event.call_id:
                    self.calls.write(event, is_news=True)
                return
            apply(self, event)

        return [(View, "apply", deaf)]

    return patches


def _decides(change: Callable[[Call, Policy], tuple[Call, Policy]]) -> Callable[[], list[Patch]]:
    """The judgement is made of another call or under another policy than it should."""

    def changed(function: Callable[..., Any]) -> Callable[..., Any]:
        def mutated(seen: View, call: Call, rules: Rules, *rest: Any) -> Any:
            call, policy = change(call, rules.policy)
            return function(seen, call, replace(rules, policy=policy), *rest)

        return mutated

    def patches() -> list[Patch]:
        return [(reader, "decide", changed(judge.decide))]

    return patches


def _compares_beginnings() -> list[Patch]:
    find = search._common_spans

    def alike(ours: Any, theirs: Any, landmarks: Any) -> Iterator[tuple[int, int, int]]:
        for low, high, at in find(ours, theirs, landmarks):
            end = high
            while end < len(ours) and at + end - low < len(theirs) and ours[end][:2] == theirs[at + end - low][:2]:
                end += 1
            yield low, end, at

    return [(search, "_common_spans", alike)]


def _finds_one_line_too_many() -> list[Patch]:
    find = search._common_spans

    def longer(ours: Any, theirs: Any, landmarks: Any) -> Iterator[tuple[int, int, int]]:
        for low, high, at in find(ours, theirs, landmarks):
            more = high < len(ours) and at + high - low < len(theirs)
            yield low, high + more, at

    return [(search, "_common_spans", longer)]


def _keeps_index(self: Any, event: Event, at: float, **known: Any) -> None:
    index = self._index
    _FOLD(self, event, at, **known)
    self._index = index if self._index is None else self._index


def _keeps_all(owner: Any) -> Callable[[], list[Patch]]:
    """Lines that are cut away keep their credit."""

    def credits_everything(event: Any, _text: str) -> Amended:
        return Amended(event.call_id, event.text, event.source_map, event.markers, event.origin, lost=False)

    return lambda: [(owner, "amend", credits_everything)]


def _an_id_names_all_its_texts() -> list[Patch]:
    def add(self: View, event: Any) -> None:
        taken = self._deliveries.pop(event.call_id, [])
        deliver(self, event)
        self._deliveries[event.call_id] = [*taken, *self._deliveries[event.call_id]]

    deliver = View._deliver
    return [(View, "_deliver", add)]


def _foreign_writes_are_skipped() -> list[Patch]:
    def own_only(record: Record, agent_id: str) -> Event | None:
        return record.event if record.agent_id == agent_id else None

    return [(log, "event_for", own_only)]


def _believes_the_section() -> list[Patch]:
    def span_in_section(_view: View, _marker: Any, restored: Any) -> SourceSpan:
        return SourceSpan(restored.call_id, Origin.RESTORED, 0, 0, "")

    return [(repair, "_span_in_section", span_in_section)]


def _own_id_is_another() -> list[Patch]:
    begin = Sources.__init__

    def changed(self: Sources, view: View, call: Call, policy: Policy) -> None:
        begin(self, view, replace(call, call_id=f"{call.call_id} "), policy)

    return [(Sources, "__init__", changed)]


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_args, **_more: value


MUTANTS = (
    Mutant("compaction is ignored", _deaf_to(Compacted)),
    Mutant("rewind is ignored", _deaf_to(Rewound)),
    Mutant("what is not in the message list is not forgotten", _deaf_to(Forgot)),
    Mutant("what the API compacted away counts as seen", lambda: [(sync, "visible_to_model", list)]),
    Mutant("what a sync finds clipped counts as seen", _keeps_all(sync), "eager"),
    Mutant("settle is ignored", _deaf_to(Amended), "eager"),
    Mutant("lines that were cut away count as seen", _keeps_all(reader), "eager"),
    Mutant(
        "a host may number lines as it likes",
        lambda: [(amend, "_numbered_right", lambda _, moved, *__: moved)],
        "eager",
    ),
    Mutant("writes are ignored", _deaf_to(Wrote)),
    Mutant("other contexts' writes are ignored", _foreign_writes_are_skipped),
    Mutant("bytes are not compared", _compares_beginnings),
    Mutant("a line next to those that are found is taken for one", _finds_one_line_too_many),
    Mutant(
        "lines are found where they stood",
        lambda: [(View, "contains", _always(True)), (log.Log, "_fold", _keeps_index)],
    ),
    Mutant("the batch is ignored", _decides(lambda call, policy: (replace(call, batch=""), policy))),
    Mutant(
        "raw lines stand for numbered ones without a word",
        lambda: [(owner, "is_bare", _always(False)) for owner in (replacements, omissions)],
    ),
    Mutant("marker lines count as content", lambda: [(marker, "find_markers", _always([]))], "any output"),
    Mutant(
        "clipping is ignored",
        lambda: [(reader, "clip_delivery", lambda event, _kept: event)],
        "head and tail",
    ),
    Mutant("who insists is not heard", lambda: [(judge, is_retry.__name__, _always(False))]),
    Mutant("the horizon is ignored", _decides(lambda c, p: (c, replace(p, horizon_tokens=None))), "horizon"),
    Mutant(
        "markers are left dangling",
        lambda: [(owner, stale_markers.__name__, _always([])) for owner in (compaction, sync)],
    ),
    Mutant("a restored section is believed to hold everything", _believes_the_section),
    Mutant("a reused id still names its older text", _an_id_names_all_its_texts, "eager"),
    Mutant("a call points at its own id", _own_id_is_another),
)
