"""The package, broken in one named way at a time.

Each mutant replaces functions of the package in this process; `with` puts them back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from readcache import session
from readcache.conversation import compact, mend, sync
from readcache.judging import answer, cover, judge, marker
from readcache.judging import reread as again
from readcache.log import log as ledger
from readcache.model.events import Compacted, Event, Forgot, Rewound, Settled, Wrote
from readcache.model.view import View

Patch = tuple[Any, str, Any]


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
                    self.calls.write(event)
                return
            apply(self, event)

        return [(View, "apply", deaf)]

    return patches


def _decides(change: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[], list[Patch]]:
    """The judgement is made of another call or under another policy than it should."""

    def patches() -> list[Patch]:
        decide = answer.decide  # type: ignore[attr-defined]

        def mutated(seen: View, call: Any, policy: Any, *rest: Any, **more: Any) -> Any:
            return decide(seen, *change(call, policy), *rest, **more)

        return [(answer, "decide", mutated)]

    return patches


def _believes_the_digest() -> list[Patch]:
    def all_equal(_ours: Any, _theirs: Any, low: int, high: int, _shift: int) -> list[tuple[int, int, bool]]:
        return [(low, high, True)]

    return [(cover, "_stretches", all_equal)]


def _keeps_all(owner: Any) -> Callable[[], list[Patch]]:
    """Lines that are cut away keep their credit."""

    def credits_everything(event: Any, _text: str) -> Settled:
        return Settled(event.call_id, event.text, event.pieces, event.pointers, event.origin)

    return lambda: [(owner, "settle", credits_everything)]


def _an_id_names_all_its_texts() -> list[Patch]:
    def add(self: View, event: Any) -> None:
        taken = self._deliveries.pop(event.call_id, [])
        deliver(self, event)
        self._deliveries[event.call_id] = [*taken, *self._deliveries[event.call_id]]

    deliver = View._deliver
    return [(View, "_deliver", add)]


def _foreign_writes_are_skipped() -> list[Patch]:
    take = ledger.Ledger._take

    def own_only(self: Any, record: Any) -> None:
        if record.agent_id == self._agent_id:
            take(self, record)

    return [(ledger.Ledger, "_take", own_only)]


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_args, **_more: value


MUTANTS = (
    Mutant("compaction is ignored", _deaf_to(Compacted)),
    Mutant("rewind is ignored", _deaf_to(Rewound)),
    Mutant("what is not in the message list is not forgotten", _deaf_to(Forgot)),
    Mutant("what a sync finds clipped counts as seen", _keeps_all(sync), "eager"),
    Mutant("settle is ignored", _deaf_to(Settled), "eager"),
    Mutant("lines that were cut away count as seen", _keeps_all(session), "eager"),
    Mutant("writes are ignored", _deaf_to(Wrote)),
    Mutant("other contexts' writes are ignored", _foreign_writes_are_skipped),
    Mutant("bytes are not compared", _believes_the_digest),
    Mutant("the batch is ignored", _decides(lambda call, policy: (replace(call, batch=""), policy))),
    Mutant(
        "raw lines stand for numbered ones",
        lambda: [(cover, "can_stand_for", _always(True)), (judge, "can_stand_for", _always(True))],
    ),
    Mutant("marker lines count as content", lambda: [(marker, "find_markers", _always([]))], "any output"),
    Mutant(
        "clipping is ignored",
        lambda: [(answer, "clip", lambda event, _kept: event)],
        "head and tail",
    ),
    Mutant("who insists is not heard", lambda: [(owner, "insists", _always(False)) for owner in (judge, again)]),
    Mutant("a re-read is answered whatever its text", lambda: [(again, "_still_stands", _always(True))]),
    Mutant("a re-read is answered whatever the rules", lambda: [(again, "_lets", _always(True))]),
    Mutant("the horizon is ignored", _decides(lambda c, p: (c, replace(p, horizon_tokens=None))), "horizon"),
    Mutant("markers are left dangling", lambda: [(owner, "dangling", _always([])) for owner in (compact, sync)]),
    Mutant("a restored section is believed to hold everything", lambda: [(mend, "_stands_in", _always(True))]),
    Mutant("a reused id still names its older text", _an_id_names_all_its_texts, "eager"),
    Mutant(
        "a call points at its own id",
        _decides(lambda call, policy: (replace(call, call_id=f"{call.call_id} "), policy)),
    ),
)
