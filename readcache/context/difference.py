"""The events of a compaction, from the messages before and after it, whoever compacted: see `history`."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Hashable, Sequence

from readcache.context.history import summary_message
from readcache.messages.messages import Kind, Message
from readcache.model.history_events import Condensed, Item, Replaced


def difference(
    condensation_id: str, view: Sequence[Item], before: Sequence[Message], after: Sequence[Message]
) -> list[Condensed | Replaced]:
    """The events that make `view`, whose messages are `before`, hold just the messages `after`; none if it does.

    A message keeps its item by the ids of its calls and results, whatever was done to their texts: it is `Replaced`
    where it differs. All that is new is a summary of the condensation; of `<condensation_id>.2`, `.3` … what comes
    after the first.
    """
    places = find_places(before, after)
    kept = {place for place in places if place is not None}
    forgotten = frozenset(item.id for place, item in enumerate(view) if place not in kept)
    condensed: list[Condensed | Replaced] = []
    replaced: list[Condensed | Replaced] = []
    for offset, (place, message) in enumerate(zip(places, after, strict=True)):
        if place is None:
            name = f"{condensation_id}.{len(condensed) + 1}" if condensed else condensation_id
            words = "\n".join(part.text for part in message.parts)
            event = Condensed(name, frozenset() if condensed else forgotten, words, offset)
            condensed.append(event)
            item = Item(event.summary_id, summary_message(words))
        else:
            item = view[place]
        if item.message != message.raw:
            replaced.append(Replaced(item.id, message.raw))
    if not condensed and forgotten:
        condensed.append(Condensed(condensation_id, forgotten))
    return condensed + replaced


def find_places(before: Sequence[Message], after: Sequence[Message]) -> list[int | None]:
    """For each message of `after` its place in `before`, ascending; None for a new one."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, message in enumerate(before):
        places[_identity(message)].append(place)
    out: list[int | None] = []
    last = -1
    for message in after:
        later = places[_identity(message)]
        at = bisect(later, last)
        if at == len(later):
            out.append(None)
        else:
            last = later[at]
            out.append(last)
    return out


def _identity(message: Message) -> Hashable:
    """By what a message is known again: its calls and results, or else its words."""
    ids = tuple((part.kind, part.call_id) for part in message.parts if part.kind in (Kind.CALL, Kind.RESULT))
    return ids if any(call_id for _, call_id in ids) else (message.role, tuple(part.text for part in message.parts))
