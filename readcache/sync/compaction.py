"""What the log must say when the harness compacts: what is gone, what was restored, and no marker left dangling."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from readcache.judging.cover import differs
from readcache.model.events import Compacted, Delivered, Event, Moment, Origin
from readcache.model.text import split_lines
from readcache.model.view import View
from readcache.model.withheld import confirmed
from readcache.restore.plan import Compaction, RestorePlan
from readcache.sync.mend import Remaining, dangling, mend
from readcache.sync.resume import results_in_log


def compaction_events(
    view: View,
    kept: frozenset[str],
    plan: RestorePlan | None,
    *,
    restored_id: str,
    tokens: int,
    log: Callable[[], Iterable[Event]] = tuple,
) -> tuple[Compaction, list[Event]]:
    """The answer to the harness and the events to append. `view` is as before the compaction; `tokens` are those of
    the restored section. `log` is asked for the calls that are kept and that the view does not follow."""
    restored = _restored(view, plan, restored_id, tokens)
    events: list[Event] = [Compacted(kept)]
    if restored is not None:
        events.append(restored)
    lost_sight = kept & (view.ids.reused | view.ids.doubted)
    rewrites = _retired(view, lost_sight, log)
    remaining = Remaining(view, (kept - lost_sight).__contains__)
    for delivery in view.deliveries:
        event = view.answer_of(delivery)
        if event.call_id not in kept or event.call_id in lost_sight or event.origin is not Origin.RESULT:
            continue
        lost = dangling(event, remaining)
        if lost:
            settled = mend(view, event, lost, restored)
            events.append(settled)
            if any(pointer.line >= 0 for pointer in lost):  # else the harness had cut its markers away
                rewrites[event.call_id] = settled.head + settled.text + settled.tail
        elif event.unconfirmed:  # a host that keeps a result has shown it
            events.append(confirmed(event.call_id))
    return Compaction(restored_id if restored is not None else None, rewrites), events


def _retired(view: View, kept: frozenset[str], log: Callable[[], Iterable[Event]]) -> dict[str, str]:
    """Return these results without the markers in them, by call: nobody would see to a marker later. A call that the
    host keeps was shown, also one that counted as not shown since its process was killed."""
    visible = (view.answer_of(delivery) for delivery in view.deliveries)
    results = {event.call_id: event for event in visible if event.origin is Origin.RESULT and event.call_id in kept}
    results |= results_in_log(kept & view.ids.doubted, log)
    told = {event: [one for one in event.pointers if one.sources and one.line >= 0] for event in results.values()}
    settled = [mend(view, event, pointers, None) for event, pointers in told.items() if pointers]
    return {event.call_id: event.head + event.text + event.tail for event in settled}


def _restored(view: View, plan: RestorePlan | None, restored_id: str, tokens: int) -> Delivered | None:
    if plan is None or not plan.items:
        return None
    section = split_lines(plan.render())
    differing = {
        piece.keys[0]
        for piece in plan.pieces()
        if differs(view, view.key(piece.keys[0]), piece, section[piece.at : piece.at + piece.count], lambda _: True)
    }
    return Delivered(
        call_id=restored_id,
        text=plan.render(),
        label=plan.heading,
        origin=Origin.RESTORED,
        pieces=plan.pieces(),
        changed=tuple(sorted(differing)),
        when=Moment(view.calls.number + 1, view.calls.tokens + tokens),
    )
