"""Fits places into a budget: the best first, neighbours joined to ranges. The budget
holds for the rendered section, titles included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from readcache.model.events import Piece
from readcache.model.policy import Budget
from readcache.model.spans import Spans, merge_spans
from readcache.restore.plan import Bytes, RestoreItem, RestorePlan

# Tokens. Less of a result, or of lines that do not all fit, is not worth its title.
LEAST = 100

Counting = Callable[[str], int]


@dataclass(frozen=True, slots=True, eq=False)
class LineSource:
    """One state of a file: its lines by number, as far as known and not already visible. Or a command's result: its
    lines from 1, and where those of files are."""

    path: str | None
    lines: Mapping[int, str]
    bytes: Bytes
    command: str | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def name(self) -> str:
        """By which its tokens are counted."""
        return self.path or f"output {id(self)}"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Lines that one result showed, where they stand now; and why they are worth their tokens."""

    source: LineSource
    numbers: tuple[int, ...]
    why: str


def fit(ranked: Sequence[Place], budget: Budget, count_tokens: Counting) -> tuple[RestoreItem, ...]:
    """The items that fit. What they take together is only known once they are laid out: as long as that is too much,
    lines are taken away at the end."""
    chosen = _choose(ranked, budget, count_tokens)
    while True:
        items = _items(ranked, chosen, count_tokens)
        taken = Counter[str]()
        for item, name in items:
            taken[name] += item.tokens
        most = budget.max_tokens_per_file
        over = {name: most / tokens for name, tokens in taken.items() if tokens > most}
        found = tuple(item for item, _ in items)
        total = count_tokens(RestorePlan(found).render()) if items and not over else 0
        if not over and total <= budget.max_tokens:
            return found
        chosen = _shortened(chosen, over, min(over.values(), default=budget.max_tokens / max(1, total)))


def _shortened(chosen: Sequence[Place], over: Collection[str], share: float) -> list[Place]:
    """The places with their last lines dropped, so that about this share remains (of those `over`, if any); at least
    one line fewer."""
    of = {place for place in chosen if not over or place.source.name in over}
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
    """As much of each place as fits into the remaining budget, the best first; each line once."""
    chosen: list[Place] = []
    taken = Counter[str]()
    held: dict[LineSource, set[int]] = {}
    titles = 0
    for place in ranked:
        source, lines = place.source, place.source.lines
        has = held.setdefault(source, set())
        numbers = [n for n in place.numbers if n not in has]
        if not numbers:
            continue
        title = count_tokens(_title(place, numbers)) if source.name not in taken else 0
        room = min(budget.max_tokens_per_file - taken[source.name], budget.max_tokens - taken.total() - titles - title)

        def cost(count: int, lines: Mapping[int, str] = lines, numbers: Sequence[int] = numbers) -> int:
            return count_tokens("\n".join(lines[n] for n in numbers[:count]))

        fitting = bisect_right(range(1, len(numbers) + 1), room, key=cost)
        is_whole = source.path is not None and fitting == len(numbers)
        is_worth = is_whole or cost(fitting) >= LEAST
        if is_worth and any(lines[n].strip() for n in numbers[:fitting]):
            chosen.append(replace(place, numbers=tuple(numbers[:fitting])))
            has.update(numbers[:fitting])
            taken[source.name] += cost(fitting)
            titles += title
    return chosen


def _title(place: Place, numbers: Sequence[int]) -> str:
    return RestorePlan((_item(place, numbers[0], numbers[-1], ""),)).render()


def _item(place: Place, start: int, end: int, body: str, tokens: int = 0) -> RestoreItem:
    source = place.source
    if source.command is not None:
        pieces = tuple(piece for piece in source.pieces if piece.at + piece.count <= end)
        return RestoreItem(None, None, None, body, tokens, place.why, source.bytes, source.command, pieces)
    why = place.why + ("" if source.bytes is Bytes.CURRENT else f"; {source.bytes.value}")
    return RestoreItem(source.path, start, end, body, tokens, why, source.bytes)


def _items(ranked: Sequence[Place], chosen: Sequence[Place], count_tokens: Counting) -> list[tuple[RestoreItem, str]]:
    """The items of the chosen lines, each with the name of its source: the best source first, a file's ranges in
    order."""
    there: dict[LineSource, list[Place]] = {}
    for place in chosen:
        there.setdefault(place.source, []).append(place)
    rank_of = {name: n for n, name in enumerate(dict.fromkeys(place.source.name for place in ranked))}
    out: list[tuple[RestoreItem, str]] = []
    for source, places in there.items():
        for start, end in _ranges(source, places):
            best = next((place for place in places if any(start <= n <= end for n in place.numbers)), None)
            if best is None:  # what stands around blank lines, and they themselves were cut off
                continue
            body = "\n".join(source.lines[n] for n in range(start, end + 1))
            out.append((_item(best, start, end, body, count_tokens(body)), source.name))
    return sorted(out, key=lambda pair: (rank_of[pair[1]], pair[0].start or 0, pair[0].end or 0))


def _ranges(source: LineSource, places: Sequence[Place]) -> Spans:
    """The lines of the places, without blank lines at the ends; of a result all that was chosen."""
    chosen = merge_spans((n, n) for place in places for n in place.numbers)
    if source.command is not None:
        return chosen
    solid = ([n for n in range(start, end + 1) if source.lines[n].strip()] for start, end in chosen)
    return tuple((numbers[0], numbers[-1]) for numbers in solid if numbers)


def not_shown(path: str, ranked: Sequence[Place], items: Sequence[RestoreItem]) -> dict[str, str]:
    """The lines of a file for which the budget was too small."""
    shown = {n for item in items if item.path == path for n in range(item.start or 0, (item.end or 0) + 1)}
    places = [place for place in ranked if place.source.path == path]
    solid = {n for place in places for n in place.numbers if place.source.lines[n].strip()} - shown
    spans = ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in merge_spans((n, n) for n in solid))
    return {path: f"budget: lines {spans}"} if spans else {}
