"""Visible lines, found by their text: any line of an output that the reader can see anywhere.

`find_visible` compares the text of whole lines. The file and line numbers only decide whether the policy allows the
omission, and how a marker names the lines.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from readcache.judging.cover import Coverage, Run, can_stand_for
from readcache.judging.diffs import find_changes
from readcache.judging.line_index import LineIndex, stretches
from readcache.judging.numbers import Proof, find_late
from readcache.judging.sources import Sources
from readcache.model.events import Piece
from readcache.model.key_view import Reference
from readcache.model.policy import Policy
from readcache.model.text import bodies, is_blank
from readcache.model.view import View

# A line that stands in more places than this, in the output or in the source, is not a landmark ("return None"). With
# 500 lines, eight times each, beside 300,000 of the same ones, every pair of places took 11 s.
MOST_PLACES = 8
# Runs taken from one source. An output that is a source's lines in another order has thousands, none worth a marker.
MOST_RUNS = 2_000

May = Callable[[Reference, Piece], bool]


def find_visible(
    view: View,
    lines: Sequence[str],
    pieces: Sequence[Piece],
    coverage: Coverage,
    index: LineIndex,
    sources: Sources,
    policy: Policy,
) -> list[Run]:
    """Disjoint runs over the lines of an output.

    Without `policy.delta`, what is a file's has none when the file was written since, or disagrees with its visible
    lines; without `policy.any_output`, what is not a file's has none.
    """
    proof = Proof(view, lines)

    def may_go(piece: Piece) -> bool:
        if not piece.keys:
            return policy.any_output
        return policy.delta or not coverage.changed.intersection(piece.keys)

    def may_stand_for(reference: Reference, piece: Piece) -> bool:
        keys = () if policy.delta else (*piece.keys, *reference.piece.keys)
        is_old = any(view.was_written_since(key, reference.delivery) for key in keys)
        if is_old or not can_stand_for(reference, piece) or not sources.allow(reference.delivery):
            return False
        return proof.allows(reference, piece)

    searched = [piece for piece in stretches(pieces, len(lines)) if may_go(piece)]
    is_open = [False] * len(lines)
    for piece in searched:
        is_open[piece.at : piece.at + piece.count] = [True] * piece.count
    if not any(is_open):
        return []
    late = list(find_late(view, searched, lines))
    return _find(view, lines, searched, is_open, index, may_stand_for, late)


def _find(
    view: View,
    lines: Sequence[str],
    pieces: Sequence[Piece],
    is_open: list[bool],
    index: LineIndex,
    may: May,
    late: Sequence[Reference],
) -> list[Run]:
    """Runs over open lines, which are then closed. Long runs first; among equals, those whose source has more of the
    output. A hunk of a diff is omitted whole or not at all: its change is the news, and must not be pieced together
    from several places."""
    ours: list[str] = [""] * len(lines)
    for piece in pieces:
        ours[piece.at : piece.at + piece.count] = bodies(lines[piece.at : piece.at + piece.count], piece.sep)
    landmarks = _find_landmarks(ours, is_open)
    found: list[Run] = []
    for reference in (*late, *index.propose(landmarks)):
        allowed = [piece for piece in pieces if may(reference, piece)]
        if allowed and view.contains(reference.delivery):
            starts = [piece.at for piece in allowed]
            runs = _common_runs(ours, view.bodies(reference), landmarks)
            for low, high, at in itertools.islice(runs, MOST_RUNS):
                found += _inside(allowed, starts, Run(low, high, reference, at, allowed[0]))
    found.sort(key=lambda run: run.low - run.high)
    changes = list(find_changes(lines)) if found else []
    out: list[Run] = []
    for run in found:
        for open_low, open_high in _open_stretches(is_open, run.low, run.high):
            for low, high in _without_parts(open_low, open_high, () if run.piece.keys else changes):
                if not all(map(is_blank, ours[low:high])):
                    out.append(replace(run, low=low, high=high, at=run.at + low - run.low))
                    is_open[low:high] = [False] * (high - low)
    return out


def _without_parts(low: int, high: int, changes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Lines low to high - 1, without the changes (low, high) that are only partly among them."""
    for first, last in changes[bisect_right(changes, low, key=itemgetter(1)) :]:
        if first >= high:
            break
        if not (low <= first and last <= high):
            if low < first:
                yield low, first
            low = last
    if low < high:
        yield low, high


def _find_landmarks(ours: Sequence[str], is_open: Sequence[bool]) -> dict[str, list[int]]:
    """The open lines that say something and stand in few places, with those places."""
    places: dict[str, list[int]] = {}
    for at, line in enumerate(ours):
        if is_open[at] and not is_blank(line):
            places.setdefault(line, []).append(at)
    return {line: at for line, at in places.items() if len(at) <= MOST_PLACES}


def _common_runs(
    ours: Sequence[str], theirs: Sequence[str], landmarks: dict[str, list[int]]
) -> Iterator[tuple[int, int, int]]:
    """(low, high, at) for each longest common run through a landmark."""
    reached: dict[int, int] = {}  # diagonal -> where in `theirs` its last run ended
    stands = Counter(filter(landmarks.__contains__, theirs))
    for at, line in enumerate(theirs):
        for place in landmarks[line] if 0 < stands.get(line, 0) <= MOST_PLACES else ():
            diagonal = place - at
            if reached.get(diagonal, 0) > at:
                continue
            low, high = at, at + 1
            while low > 0 and low + diagonal > 0 and theirs[low - 1] == ours[low - 1 + diagonal]:
                low -= 1
            while high < len(theirs) and high + diagonal < len(ours) and theirs[high] == ours[high + diagonal]:
                high += 1
            reached[diagonal] = high
            yield low + diagonal, high + diagonal, low


def _inside(pieces: Sequence[Piece], starts: Sequence[int], run: Run) -> Iterator[Run]:
    """The parts of a run inside these pieces, which are in order and begin at `starts`."""
    for piece in pieces[max(0, bisect_right(starts, run.low) - 1) : bisect_left(starts, run.high)]:
        low, high = max(run.low, piece.at), min(run.high, piece.at + piece.count)
        if low < high:
            yield Run(low, high, run.reference, run.at + low - run.low, piece)


def _open_stretches(is_open: Sequence[bool], low: int, high: int) -> Iterator[tuple[int, int]]:
    """(low, high) for each stretch of open lines."""
    for flag, group in itertools.groupby(range(low, high), key=is_open.__getitem__):
        inside = list(group)
        if flag:
            yield inside[0], inside[-1] + 1
