"""Repeated requests: a reader that asks again right after an omission is shown what was omitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readcache.judging.cover import Run
from readcache.judging.line_index import stretches
from readcache.judging.sources import Sources
from readcache.model.call import Call
from readcache.model.events import Origin, Piece
from readcache.model.key_view import Delivery, Reference
from readcache.model.text import split_lines
from readcache.model.view import View

# A repeat counts as insisting when at most this many other calls came since the omission, not counting other omissions
# and their repeats: a model may look around (`pwd`, `ls`) before it asks again, or repeat a whole batch of requests.
INSIST_WITHIN = 2
# At any distance: a weak model may loop over the same few requests. Chosen by replay.
MOST_OMISSIONS_IN_A_ROW = 2


def insists(view: View, call: Call) -> bool:
    """True if this request repeats an omitted one right after it, or was answered by omissions too often."""
    if view.calls.omissions_of(call.request) >= MOST_OMISSIONS_IN_A_ROW:
        return True
    others = view.calls.since_omission(call.request, view.calls.number_of(call.call_id))
    return others is not None and others <= INSIST_WITHIN


def find_rest(
    view: View, call: Call, lines: Sequence[str], pieces: Sequence[Piece], sources: Sources
) -> tuple[Run, ...]:
    """What the last reply to the same request showed, where that left out a part and was not itself an answer to one
    who insisted. Nothing when the output is another one now."""
    answered = view.of_call(view.calls.answered_in_part(call.request))
    for delivery in answered:
        if delivery.event.origin is Origin.RESULT and sources.allow(delivery):
            shown = tuple(_shown(delivery, lines))
            if sum(high - low for low, high, _ in shown) + _left_out(delivery) == len(lines):
                return tuple(_runs(delivery, shown, pieces, len(lines)))
    return ()


def _left_out(delivery: Delivery) -> int:
    return sum(pointer.end - pointer.start + 1 for pointer in delivery.event.pointers)


def _shown(delivery: Delivery, lines: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """(low, high, at): lines low to high - 1 of the output are the reply's from line `at` on, byte for byte; ends where
    they are not."""
    theirs = split_lines(delivery.event.text)
    low = at = 0
    for pointer in (*delivery.event.pointers, None):
        stop = len(theirs) if pointer is None else pointer.line
        high = low + stop - at
        if stop < at or list(lines[low:high]) != theirs[at:stop]:
            return
        yield low, high, at
        if pointer is not None:
            low, at = high + pointer.end - pointer.start + 1, stop + 1


def _runs(
    delivery: Delivery, shown: Sequence[tuple[int, int, int]], pieces: Sequence[Piece], count: int
) -> Iterator[Run]:
    for piece in stretches(pieces, count):
        for low, high, at in shown:
            first, last = max(low, piece.at), min(high, piece.at + piece.count)
            if first < last:
                there = Piece((), at + first - low, last - first, sep=piece.sep)
                yield Run(first, last, Reference(delivery, there), 0, piece)
