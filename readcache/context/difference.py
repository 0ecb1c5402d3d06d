"""The events of a compaction, from the messages before and after it, whoever compacted: see `history`."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from readcache.context.history import Condensed, Item, Replaced, summary_message
from readcache.messages.messages import Kind, normalise_one


def difference(
    condensation_id: str, view: Sequence[Item], messages: Sequence[Mapping[str, Any]]
) -> list[Condensed | Replaced]:
    """The events after which the items of `view` have just these messages; none when they have them already.

    Calls and results keep their item by their call ids, whatever was done to their texts: they are `Replaced` where
    they differ. All that is new is a summary of the condensation; of `<condensation_id>.2`, `.3` … what comes after the
    first.
    """
    items = _kept(view, messages)
    forgotten = frozenset(item.id for item in view) - {item.id for item in items if item is not None}
    condensed: list[Condensed | Replaced] = []
    replaced: list[Condensed | Replaced] = []
    for offset, (item, message) in enumerate(zip(items, messages, strict=True)):
        if item is None:
            name = f"{condensation_id}.{len(condensed) + 1}" if condensed else condensation_id
            words = "\n".join(part.text for part in normalise_one(message, offset).parts)
            event = Condensed(name, frozenset() if condensed else forgotten, words, offset)
            condensed.append(event)
            item = Item(event.summary_id, summary_message(words))
        if item.message != message:
            replaced.append(Replaced(item.id, message))
    if not condensed and (forgotten or replaced):
        condensed.append(Condensed(condensation_id, forgotten))
    return condensed + replaced


def _kept(view: Sequence[Item], messages: Sequence[Mapping[str, Any]]) -> list[Item | None]:
    """For each message the item that it is, in the order of the view; None for a new one."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, item in enumerate(view):
        places[_identity(item.message)].append(place)
    out: list[Item | None] = []
    last = -1
    for message in messages:
        later = places[_identity(message)]
        at = bisect(later, last)
        if at == len(later):
            out.append(None)
        else:
            last = later[at]
            out.append(view[last])
    return out


def _identity(message: Mapping[str, Any]) -> Hashable:
    """By what a message is known again: its calls and results, or else its words."""
    normal = normalise_one(message, 0)
    ids = tuple((part.kind, part.call_id) for part in normal.parts if part.kind in (Kind.CALL, Kind.RESULT))
    return ids if any(call_id for _, call_id in ids) else (normal.role, tuple(part.text for part in normal.parts))
