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
from readcache.model.text import DIFF, ELISION, shows_numbers

# Files, and stretches of their lines, that a marker names; more are hard to read, and cost what they save.
MOST_FILES = 2
MOST_SPANS = 4
# Stretches at its sources that a marker names for lines that do not stand in one piece there: of 4, max saves a tenth
# of a point less, of any number 0.03 points more, in markers of hundreds of characters.
MOST_THERE = 8
# Runs of one marker: all are described again with each that is added. The recordings have 18.
MOST_RUNS = 100


@dataclass(frozen=True, slots=True)
class LinesThere:
    """Omitted lines at one source: their runs, as the source shows them in one form."""

    runs: Sequence[Run]
    form: str  # how the source shows them, if not as this output does
    spans: Sequence[Span]  # what a marker names: lines of the file if all have numbers there, or of the source's text


@dataclass(frozen=True, slots=True)
class Omission:
    """Output lines low to high - 1 that may be omitted, and the runs that say where they are."""

    low: int
    high: int
    runs: Sequence[Run]


def make_omissions(runs: Sequence[Run]) -> tuple[Omission, ...]:
    """Join adjacent runs to one omission, as long as one marker can describe them."""
    groups: list[list[Run]] = []
    for run in sorted(runs, key=lambda r: r.low):
        if groups and groups[-1][-1].high == run.low and describe([*groups[-1], run]):
            groups[-1].append(run)
        else:
            groups.append([run])
    return tuple(Omission(group[0].low, group[-1].high, group) for group in groups)


def describe(runs: Sequence[Run]) -> list[LinesThere] | None:
    """Return what one marker says of where these runs are, a source each. Return None if no marker can say of them all
    that it has to, or if it would be too long."""
    if len(runs) > MOST_RUNS or (any(map(is_bare, runs)) and named_lines(runs) is None):
        return None
    groups: dict[tuple[str, Origin, str], list[Run]] = {}
    for run in runs:
        event = run.reference.event
        groups.setdefault((event.call_id, event.origin, _form(run)), []).append(run)
    out: list[LinesThere] = []
    for (_, _, form), theirs in groups.items():
        spans = _spans_there(theirs, runs)
        if spans is None:
            return None
        out.append(LinesThere(theirs, form, spans))
    is_short = sum(len(there.spans) for there in out) <= MOST_THERE
    texts = {(call_id, origin) for call_id, origin, _ in groups}
    return out if is_short and len(texts) <= marker.MOST_SOURCES else None


def _form(run: Run) -> str:
    """Return how the source shows the lines, if their prefix there differs from the one here."""
    there = run.reference.piece.sep
    if there is not None and there.startswith(DIFF):
        return "within a diff"
    return "without numbers" if is_bare(run) else ""


def _spans_there(runs: Sequence[Run], of: Sequence[Run]) -> list[Span] | None:
    """Return the lines that the marker of all the runs `of` has to name at one source. They are numbers in the file if
    these differ from the numbers here, and places in the source's text if the lines are not in one piece there. Return
    None if it cannot name them."""
    is_in_one_piece = len(spans_of((place_there(run), run) for run in runs)) == 1
    moved = [run for run in runs if number_there(run) not in (0, number_here(run))]
    if all(map(number_there, runs)):
        if moved:
            return spans_of((number_there(run), run) for run in runs)
        return [] if is_in_one_piece or named_lines(of) is not None else None
    if is_in_one_piece:
        return []
    if any(run.piece.sep is not None for run in moved) or not all(map(place_shown, runs)):
        return None  # the numbers differ, and the marker could name only the places; or their places are not known
    return spans_of((place_shown(run), run) for run in runs)


def named_lines(runs: Sequence[Run]) -> dict[str, Spans] | None:
    """The lines of each file that the runs cover, if all are known, none occurs twice, and few enough to name."""
    spans: dict[str, list[Span]] = {}
    for run in runs:
        if len(run.piece.keys) != 1 or not run.piece.first:
            return None
        spans.setdefault(run.piece.keys[0], []).append(file_span(run))
    if any(a[1] >= b[0] for found in spans.values() for a, b in itertools.pairwise(found)):
        return None
    merged = {path: merge_spans(found) for path, found in spans.items()}
    return merged if len(merged) <= MOST_FILES and sum(map(len, merged.values())) <= MOST_SPANS else None


def count_chars(lines: Sequence[str], low: int, high: int) -> int:
    """The characters of lines low to high - 1, with their newlines."""
    return sum(map(len, lines[low:high])) + high - low


def file_span(run: Run) -> Span:
    """Return the numbers of the run's lines in the file."""
    start = run.piece.first + run.low - run.piece.at
    return start, start + run.high - run.low - 1


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
