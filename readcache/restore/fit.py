"""Fits stretches into a budget: the best first, neighbours joined to ranges, a few lines around them for context. The
budget holds for the rendered section, titles included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from readcache.model.policy import Budget
from readcache.model.spans import Spans, merge_spans
from readcache.restore.plan import Bytes, RestoreItem, RestorePlan
from readcache.restore.rank import Stretch

# Lines. What stands around a range is shown with it where it is known, as `diff` does, and short gaps are closed by it:
# a title costs as much as a line or two.
CONTEXT = 3

Counting = Callable[[str], int]


@dataclass(frozen=True, slots=True, eq=False)
class FileText:
    """One state of a file: its lines by number, as far as known and not already visible."""

    path: str
    lines: Mapping[int, str]
    bytes: Bytes


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A stretch where it stands now."""

    text: FileText
    stretch: Stretch
    numbers: tuple[int, ...]


def fit(ranked: Sequence[Place], budget: Budget, count_tokens: Counting) -> tuple[RestoreItem, ...]:
    """The ranges that fit. What they take together is only known once they are laid out: as long as that is too much,
    lines are taken away at the end."""
    chosen = _choose(ranked, budget, count_tokens)
    while True:
        items = _items(ranked, chosen, count_tokens)
        taken = Counter[str]()
        for item in items:
            taken[item.path] += item.tokens
        most = budget.max_tokens_per_file
        over = {path: most / tokens for path, tokens in taken.items() if tokens > most}
        total = count_tokens(RestorePlan(items).render()) if items and not over else 0
        if not over and total <= budget.max_tokens:
            return items
        chosen = _shortened(chosen, over, min(over.values(), default=budget.max_tokens / max(1, total)))


def _shortened(chosen: Sequence[Place], over: Collection[str], share: float) -> list[Place]:
    """The places with their last lines dropped, so that about this share remains (of the files `over`, if any); at
    least one line fewer."""
    of = {place for place in chosen if not over or place.text.path in over}
    drop = max(1, ceil((1 - share) * sum(len(place.numbers) for place in of)))
    out: list[Place] = []
    for place in reversed(chosen):
        if place in of:
            left = max(0, len(place.numbers) - drop)
            drop -= len(place.numbers) - left
            place = replace(place, numbers=place.numbers[:left])
        out += [place] if place.numbers else []
    return out[::-1]


def _choose(ranked: Sequence[Place], budget: Budget, count_tokens: Counting) -> list[Place]:
    """As much of each stretch as fits into the remaining budget, the best first."""
    chosen: list[Place] = []
    taken = Counter[str]()
    titles = 0
    for place in ranked:
        path, lines, numbers = place.text.path, place.text.lines, place.numbers
        title = 0
        if path not in taken:
            bare = RestoreItem(path, numbers[0], numbers[-1], "", 0, place.stretch.why, place.text.bytes)
            title = count_tokens(RestorePlan((bare,)).render())
        room = min(budget.max_tokens_per_file - taken[path], budget.max_tokens - taken.total() - titles - title)
        if room <= 0:
            continue

        def cost(count: int, lines: Mapping[int, str] = lines, numbers: Sequence[int] = numbers) -> int:
            return count_tokens("\n".join(lines[n] for n in numbers[:count]))

        fitting = bisect_right(range(1, len(numbers) + 1), room, key=cost)
        if any(lines[n].strip() for n in numbers[:fitting]):
            chosen.append(replace(place, numbers=numbers[:fitting]))
            taken[path] += cost(fitting)
            titles += title
    return chosen


def _items(ranked: Sequence[Place], chosen: Sequence[Place], count_tokens: Counting) -> tuple[RestoreItem, ...]:
    """The ranges of the chosen lines: the best file first, each file's in order."""
    there: dict[FileText, list[Place]] = {}
    for place in chosen:
        there.setdefault(place.text, []).append(place)
    rank_of = {path: n for n, path in enumerate(dict.fromkeys(place.text.path for place in ranked))}
    out: list[RestoreItem] = []
    for text, places in there.items():
        for start, end in _ranges(text, places):
            best = next((place for place in places if any(start <= n <= end for n in place.numbers)), None)
            if best is None:  # what stands around blank lines, and they themselves were cut off
                continue
            why = best.stretch.why + ("" if text.bytes is Bytes.CURRENT else f"; {text.bytes.value}")
            body = "\n".join(text.lines[n] for n in range(start, end + 1))
            out.append(RestoreItem(text.path, start, end, body, count_tokens(body), why, text.bytes))
    return tuple(sorted(out, key=lambda item: (rank_of[item.path], item.start, item.end)))


def _ranges(text: FileText, places: Sequence[Place]) -> Spans:
    """The lines of the stretches with those around them, without blank lines at the ends."""
    chosen = merge_spans((n, n) for place in places for n in place.numbers)
    joined = merge_spans((_reach(text, start, -1), _reach(text, end, 1)) for start, end in chosen)
    solid = ([n for n in range(start, end + 1) if text.lines[n].strip()] for start, end in joined)
    return tuple((numbers[0], numbers[-1]) for numbers in solid if numbers)


def _reach(text: FileText, line: int, step: int) -> int:
    """The last of the known lines next to `line` in one direction, CONTEXT of them at most."""
    for _ in range(CONTEXT):
        if line + step not in text.lines:
            break
        line += step
    return line


def not_shown(places: Sequence[Place], items: Sequence[RestoreItem]) -> dict[str, str]:
    """The lines of a file for which the budget was too small."""
    path = places[0].text.path
    shown = {n for item in items if item.path == path for n in range(item.start, item.end + 1)}
    solid = {n for place in places for n in place.numbers if place.text.lines[n].strip()} - shown
    spans = ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in merge_spans((n, n) for n in solid))
    return {path: f"budget: lines {spans}"} if spans else {}
