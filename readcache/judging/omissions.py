"""Runs of visible lines put together to what one marker can stand for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from readcache.judging import marker
from readcache.judging.cover import Run
from readcache.model.events import Origin
from readcache.model.key_view import Delivery
from readcache.model.spans import Span, Spans, merge_spans
from readcache.model.text import ELISION, shows_numbers

# Files, and stretches of their lines, that a marker names; more are hard to read, and cost what they save.
MOST_FILES = 2
MOST_SPANS = 4
# Stretches at its sources that a marker names for lines that do not stand in one piece there: of 4, max saves a tenth
# of a point less, of any number 0.03 points more, in markers of hundreds of characters.
MOST_THERE = 8
# Runs behind one marker: whether it has words for them is asked with each that is added. The recordings have 18.
MOST_RUNS = 100


@dataclass(frozen=True, slots=True)
class Omission:
    """Output lines low to high - 1 that may be left out, and the runs that say where they stand."""

    low: int
    high: int
    runs: tuple[Run, ...]


def make_omissions(runs: Sequence[Run]) -> tuple[Omission, ...]:
    """Adjacent runs become one omission, as long as one marker can describe them."""
    groups: list[list[Run]] = []
    for run in sorted(runs, key=lambda r: r.low):
        if groups and groups[-1][-1].high == run.low and _has_words([*groups[-1], run]):
            groups[-1].append(run)
        else:
            groups.append([run])
    return tuple(Omission(group[0].low, group[-1].high, tuple(group)) for group in groups)


def named_lines(runs: Sequence[Run]) -> dict[str, Spans] | None:
    """The lines of each file that the runs cover, if all are known, none occurs twice, and few enough to name."""
    spans: dict[str, list[Span]] = {}
    for run in runs:
        if len(run.piece.keys) != 1 or not run.piece.first:
            return None
        start = run.piece.first + run.low - run.piece.at
        spans.setdefault(run.piece.keys[0], []).append((start, start + run.high - run.low - 1))
    if any(a[1] >= b[0] for found in spans.values() for a, b in itertools.pairwise(found)):
        return None
    merged = {path: merge_spans(found) for path, found in spans.items()}
    return merged if len(merged) <= MOST_FILES and sum(map(len, merged.values())) <= MOST_SPANS else None


def count_chars(lines: Sequence[str], low: int, high: int) -> int:
    """The characters of lines low to high - 1, with their newlines."""
    return sum(map(len, lines[low:high])) + high - low


def is_bare(run: Run) -> bool:
    """True if the lines have numbers in front that are not to be seen at the source, so that the marker names them."""
    return run.piece.sep is not None and not shows_numbers(run.reference.piece.sep)


def number_here(run: Run) -> int:
    """The number of the run's first line in this output; 0 if unknown."""
    piece = run.piece
    return piece.first and piece.first + piece.shift + run.low - piece.at


def number_there(run: Run) -> int:
    """The same as the source has it."""
    piece = run.reference.piece
    return piece.first and piece.first + piece.shift + run.at


def place_there(run: Run) -> int:
    """The number of the run's first line in the source's text."""
    return run.reference.piece.at + run.at + 1


def place_shown(run: Run) -> int:
    """The same with what the host puts before that text; 0 if unknown, behind words of the host's own."""
    event, place = run.reference.event, place_there(run)
    return 0 if 0 <= _elided_at(run.reference.delivery) < place else place + event.head.count("\n")


@lru_cache(maxsize=4)  # it keeps their texts
def _elided_at(delivery: Delivery) -> int:
    """The index of the line that stands for what the host cut; -1 if there is none."""
    before, found, _ = delivery.event.text.partition(f"\n{ELISION}\n")
    return before.count("\n") + 1 if found else -1


def spans_of(runs: Iterable[tuple[int, Run]]) -> list[Span]:
    """Runs, from the line of that number on, as spans in their own order: one after the other where they go on."""
    out: list[Span] = []
    for start, run in runs:
        end = start + run.high - run.low - 1
        if out and out[-1][1] + 1 == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def _has_words(runs: Sequence[Run]) -> bool:
    """True if one marker can say of them all what it has to."""
    by_source: dict[tuple[str, Origin], list[Run]] = {}
    for run in runs:
        by_source.setdefault(_source(run), []).append(run)
    if len(runs) > MOST_RUNS or len(by_source) > marker.MOST_SOURCES:
        return False
    if any(map(is_bare, runs)) and named_lines(runs) is None:
        return False
    return sum(_count_told(theirs, runs) for theirs in by_source.values()) <= MOST_THERE


def _count_told(runs: Sequence[Run], of: Sequence[Run]) -> int:
    """How many stretches the marker of all the runs `of` has to name for those that do not stand in one piece at their
    source; too many where it cannot name them."""
    places = spans_of((place_there(run), run) for run in runs)
    moved = [run for run in runs if number_there(run) not in (0, number_here(run))]
    if not all(map(number_there, runs)):
        shows_others = any(run.piece.sep is not None for run in moved)  # numbers, and places alone can be named
        is_told = len(places) == 1 or (not shows_others and all(map(place_shown, runs)))
        return len(places) - (len(places) == 1) if is_told else MOST_THERE + 1
    if moved:
        return len(spans_of((number_there(run), run) for run in runs))
    return 0 if len(places) == 1 or named_lines(of) is not None else MOST_THERE + 1


def _source(run: Run) -> tuple[str, Origin]:
    return run.reference.event.call_id, run.reference.event.origin
