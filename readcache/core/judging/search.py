"""Find visible lines by their text: any line of an output that the reader can see anywhere.

`find_visible` compares the text of whole lines. The file and line numbers only decide if the policy allows the
omission, and how a marker names the lines. `Sources` decides which deliveries a marker may name.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from readcache.core.judging.cover import Coverage, Match, can_replace, decided
from readcache.core.judging.line_index import LineIndex, fill_gaps, find_changes
from readcache.core.judging.numbers import Proof, find_late
from readcache.core.model.call import Call
from readcache.core.model.events import MappedSpan
from readcache.core.model.key_view import Delivery, VisibleSpan
from readcache.core.model.policy import Policy
from readcache.core.model.text import bodies, is_blank
from readcache.core.model.view import View

# A line at more positions than this, in the output or in the source, is not a landmark ("return None"). Trying every
# pair of positions took 11 s for 500 lines, eight times each, against 300,000 of the same lines.
MOST_POSITIONS = 8
# Matches with one source. An output with a source's lines in another order has thousands, none worth a marker.
MOST_MATCHES = 2_000

May = Callable[[VisibleSpan, MappedSpan], bool]


class Sources:
    """The sources of one call.

    `same_batch`: True if a delivery was refused because it may appear after this call. It belongs to the call's own
    batch, or it was logged after the call had started.
    """

    __slots__ = ("_call", "_oldest", "same_batch")

    def __init__(self, view: View, call: Call, policy: Policy) -> None:
        self._call = call
        self._oldest = -1 if policy.horizon_tokens is None else view.calls.tokens - policy.horizon_tokens
        self.same_batch = False

    def is_other_view(self, delivery: Delivery) -> bool:
        """Return True if the delivery shows files in another rendering than this call."""
        return not delivery.is_rendered_as(self._call.rendering)

    def allow(self, delivery: Delivery) -> bool:
        """Return True if a marker may name this delivery as its source.

        The delivery must come from another call, be inside `Policy.horizon_tokens`, and be certain to appear before
        this call.
        """
        event = delivery.event
        if event.call_id == self._call.call_id or event.when.tokens < self._oldest:
            return False
        at_once = event.when.batch != "" and event.when.batch == self._call.batch
        if at_once or 0 <= self._call.started < event.when.call:
            self.same_batch = True
            return False
        return True


def find_visible(
    view: View,
    lines: Sequence[str],
    source_map: Sequence[MappedSpan],
    coverage: Coverage,
    index: LineIndex,
    sources: Sources,
    policy: Policy,
) -> list[Match]:
    """Return matches for the lines of an output. They do not overlap.

    Without `policy.delta`, lines of a file get no match if the file was written since, or if it disagrees with its
    visible lines. If it disagrees only with another rendering, they get matches in their own rendering. Without
    `policy.any_output`, lines that belong to no file get no match.
    """
    proof = Proof(view, lines)

    def may_go(mapped: MappedSpan) -> bool:
        if not mapped.keys:
            return policy.any_output
        return policy.delta or not coverage.changed.intersection(mapped.keys)

    def may_replace(visible: VisibleSpan, mapped: MappedSpan) -> bool:
        ours, theirs = mapped.keys, visible.mapped.keys
        keys = () if policy.delta else ours if set(ours) <= set(theirs) else (*ours, *theirs)
        is_old = any(view.was_written_since(key, visible.delivery) for key in keys)
        is_old |= sources.is_other_view(visible.delivery) and not coverage.other_views.isdisjoint(keys)
        if is_old or not can_replace(visible, mapped) or not sources.allow(visible.delivery):
            return False
        return proof.allows(visible, mapped)

    searched = [mapped for mapped in fill_gaps(source_map, len(lines)) if may_go(mapped)]
    is_open = [False] * len(lines)
    for mapped in searched:
        is_open[mapped.at : mapped.at + mapped.count] = [True] * mapped.count
    if not any(is_open):
        return []
    late = list(find_late(view, searched, lines))
    return _find(view, lines, searched, is_open, index, may_replace, late)


def _find(
    view: View,
    lines: Sequence[str],
    source_map: Sequence[MappedSpan],
    is_open: list[bool],
    index: LineIndex,
    may: May,
    late: Sequence[VisibleSpan],
) -> list[Match]:
    """Return matches for open lines, and close these lines.

    Long matches come first. Of equal ones, matches come first whose source has more of the output. A hunk of a diff is
    omitted as a whole or not at all. The reader needs its change as one text, not as parts at several sources.
    """
    ours: list[str] = [""] * len(lines)
    for mapped in source_map:
        ours[mapped.at : mapped.at + mapped.count] = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
    landmarks = _find_landmarks(ours, is_open)
    found: list[Match] = []
    for visible in (*late, *index.propose(landmarks)):
        allowed = [mapped for mapped in source_map if may(visible, mapped)]
        if allowed and view.contains(visible.delivery):
            starts = [mapped.at for mapped in allowed]
            matches = _common_spans(ours, view.bodies(visible), landmarks)
            for low, high, at in itertools.islice(matches, MOST_MATCHES):
                found += _inside(allowed, starts, Match(low, high, visible, at, allowed[0]))
    found.sort(key=lambda match: match.low - match.high)
    changes = list(find_changes(lines)) if found else []
    out: list[Match] = []
    for match in found:
        for open_low, open_high in _open_spans(is_open, match.low, match.high):
            for low, high in _without_parts(open_low, open_high, () if match.mapped.keys else changes):
                if not all(map(is_blank, ours[low:high])):
                    part = replace(match, low=low, high=high, at=match.at + low - match.low)
                    out.append(decided(part, ours[low:high]))
                    is_open[low:high] = [False] * (high - low)
    return out


def _without_parts(low: int, high: int, changes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of lines low to high - 1 without the changes (low, high) that are only partly among them."""
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
    """Return the open, non-blank lines that occur at few positions, with these positions."""
    positions: dict[str, list[int]] = {}
    for at, line in enumerate(ours):
        if is_open[at] and not is_blank(line):
            positions.setdefault(line, []).append(at)
    return {line: at for line, at in positions.items() if len(at) <= MOST_POSITIONS}


def _common_spans(
    ours: Sequence[str], theirs: Sequence[str], landmarks: dict[str, list[int]]
) -> Iterator[tuple[int, int, int]]:
    """Yield (low, high, at) for each longest common run through a landmark.

    The run is lines low to high - 1 of `ours`, and begins at line `at` of `theirs`.
    """
    reached: dict[int, int] = {}  # diagonal -> the end of its last run in `theirs`
    counts = Counter(filter(landmarks.__contains__, theirs))
    for at, line in enumerate(theirs):
        for position in landmarks[line] if 0 < counts.get(line, 0) <= MOST_POSITIONS else ():
            diagonal = position - at
            if reached.get(diagonal, 0) > at:
                continue
            low, high = at, at + 1
            while low > 0 and low + diagonal > 0 and theirs[low - 1] == ours[low - 1 + diagonal]:
                low -= 1
            while high < len(theirs) and high + diagonal < len(ours) and theirs[high] == ours[high + diagonal]:
                high += 1
            reached[diagonal] = high
            yield low + diagonal, high + diagonal, low


def _inside(source_map: Sequence[MappedSpan], starts: Sequence[int], match: Match) -> Iterator[Match]:
    """Yield the parts of a match inside these mapped spans, which are in order and begin at `starts`."""
    for mapped in source_map[max(0, bisect_right(starts, match.low) - 1) : bisect_left(starts, match.high)]:
        low, high = max(match.low, mapped.at), min(match.high, mapped.at + mapped.count)
        if low < high:
            yield Match(low, high, match.visible, match.at + low - match.low, mapped)


def _open_spans(is_open: Sequence[bool], low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield (low, high) for each run of open lines."""
    for flag, group in itertools.groupby(range(low, high), key=is_open.__getitem__):
        inside = list(group)
        if flag:
            yield inside[0], inside[-1] + 1
