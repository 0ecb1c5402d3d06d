"""Make the events of a view that continues without a part of its conversation, or in another reader.

- A compaction: the events record gone calls and restored lines, and repair stale markers.
- A sub-agent that starts with a copy of its parent's messages: the events make the same view in an empty log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from readcache.core.judging.cover import find_differing
from readcache.core.model.call import BASH
from readcache.core.model.events import Compacted, Delivered, Event, Forgot, Moment, Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.text import split_lines
from readcache.core.model.unconfirmed import confirmed
from readcache.core.model.view import View
from readcache.core.restore.plan import Compaction, RestorePlan
from readcache.core.sync.repair import Remaining, repair_markers, stale_markers
from readcache.core.sync.resume import results_in_log


def compaction_events(
    view: View,
    kept: frozenset[str],
    plan: RestorePlan | None,
    *,
    restored_id: str,
    tokens: int,
    log: Callable[[], Iterable[Event]] = tuple,
) -> tuple[Compaction, list[Event]]:
    """Return the answer to the harness and the events to append. `view`: as before the compaction. `kept`: the calls
    that stay. `tokens`: the size of the restored section. `log`: read for kept calls that the view does not follow."""
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
        lost = stale_markers(event, remaining)
        if lost:
            amended = repair_markers(view, event, lost, restored)
            events.append(amended)
            if any(marker.line >= 0 for marker in lost):  # otherwise the harness had removed these markers
                rewrites[event.call_id] = amended.head + amended.text + amended.tail
        elif event.unconfirmed:  # a host that keeps a result has shown it
            events.append(confirmed(event.call_id))
    return Compaction(restored_id if restored is not None else None, rewrites), events


def _retired(view: View, kept: frozenset[str], log: Callable[[], Iterable[Event]]) -> dict[str, str]:
    """Return the texts of these kept results with their markers retired, by call."""
    # Nobody would repair such a marker later. A call that the host keeps was shown, even if it counted as not shown
    # because its process was killed.
    visible = (view.answer_of(delivery) for delivery in view.deliveries)
    results = {event.call_id: event for event in visible if event.origin is Origin.RESULT and event.call_id in kept}
    results |= results_in_log(kept & view.ids.doubted, log)
    by_event = {event: [one for one in event.markers if one.sources and one.line >= 0] for event in results.values()}
    amended = [repair_markers(view, event, markers, None) for event, markers in by_event.items() if markers]
    return {event.call_id: event.head + event.text + event.tail for event in amended}


def _restored(view: View, plan: RestorePlan | None, restored_id: str, tokens: int) -> Delivered | None:
    if plan is None or not plan.items:
        return None
    section = split_lines(plan.render())
    differing = {
        mapped.keys[0]
        for mapped in plan.source_map()
        for numbered in (view.key(mapped.keys[0]).numbered_in(BASH),)
        for texts in (section[mapped.at : mapped.at + mapped.count],)
        if any(find_differing(view, numbered, mapped, texts, lambda _: True))
    }
    return Delivered(
        call_id=restored_id,
        text=plan.render(),
        label=plan.heading,
        origin=Origin.RESTORED,
        rendering=Origin.RESTORED.value,  # of its own: its lines are from the disk, or from the texts of any tool
        source_map=plan.source_map(),
        changed=tuple(sorted(differing)),
        when=Moment(view.calls.number + 1, view.calls.tokens + tokens),
    )


def inherited_events(view: View, log: Callable[[], Iterable[Event]]) -> list[Event]:
    """Return events that make the same view in an empty log. `log`: read for the calls that are in doubt.

    The events do not count in the child's statistics, because the child did not make these calls. A delivery whose file
    was written or changed since stays outdated. `Delivered.changed` records this, because a `Wrote` would concern the
    session's other readers, too.
    """
    first: dict[Delivery, tuple[str, ...]] = {}  # the first delivery since keys changed -> these keys
    unseen: list[str] = []  # changed keys without a delivery since
    keys = view.known_keys()
    for key in keys:
        known = view.key(key)
        if known.invalid is None:
            continue
        if known.current:
            delivery = known.current[0].delivery
            first[delivery] = (*first.get(delivery, ()), key)
        else:
            unseen.append(key)
    remaining = Remaining(view, view.is_visible)
    events = [
        replace(_copied(event, remaining), changed=tuple(dict.fromkeys((*event.changed, *first.get(d, ())))))
        for d in view.deliveries
        for event in (view.answer_of(d),)
    ]
    results = results_in_log(view.ids.doubted, log)  # for their markers, if the host keeps these results
    events += [replace(_copied(event, remaining), source_map=(), changed=()) for event in results.values()]
    events.sort(key=lambda event: event.when.call)
    later = _later_namesakes(view)
    is_short = view.calls.tokens > (events[-1].when.tokens if events else 0)
    events += later
    if unseen or later or is_short:  # without this event, old text would count as newer than it is
        call = view.calls.number + 1
        when = Moment(call, view.calls.tokens)
        events.append(Delivered(f"inherited-{call}", "", "", Origin.RESTORED, changed=tuple(unseen), when=when))
    used, doubted = view.ids.known(view.is_visible), frozenset(results)
    return [*([Forgot(used)] if used else []), *events, *([Forgot(doubted, doubted=True)] if doubted else [])]


def _copied(event: Delivered, remaining: Remaining) -> Delivered:
    """Return the delivery without its account, because the child did not request it. A source that is gone becomes "",
    which matches no call."""
    markers = (p if remaining.confirms(p, event.when.call) else replace(p, sources=("",)) for p in event.markers)
    return replace(event, account=None, markers=tuple(markers))


def _later_namesakes(view: View) -> list[Delivered]:
    """Return the later calls that left the view and have the label of a visible result. Because of them, a marker calls
    that result "an earlier" one."""
    seen = {delivery.call: delivery.event.label for delivery in view.deliveries}
    newest = {view.calls.newest_of(label): label for label in seen.values() if label}
    later = sorted((number, label) for number, label in newest.items() if number not in seen)
    return [
        Delivered(f"inherited-{number}", "", label, when=Moment(number, view.calls.tokens)) for number, label in later
    ]
