"""Make the events of a sub-agent that starts with a copy of its parent's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from readcache.core.model.events import Delivered, Event, Forgot, Moment, Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.view import View
from readcache.core.sync.repair import Remaining
from readcache.core.sync.resume import results_in_log


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
    seen = {(delivery.event.label, delivery.call) for delivery in view.deliveries}
    newest = {label: view.calls.newest_of(label) for label, _ in seen if label}
    later = sorted((number, label) for label, number in newest.items() if (label, number) not in seen)
    return [
        Delivered(f"inherited-{number}", "", label, when=Moment(number, view.calls.tokens)) for number, label in later
    ]
