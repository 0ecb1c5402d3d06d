"""Runs of visible lines put together to what one marker can stand for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from readcache.core.judging import marker
from readcache.core.judging.cover import Match
from readcache.core.model.events import Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.spans import Span, Spans, merge_spans
from readcache.core.model.text import DIFF, ELISION, shows_numbers

# Files, and stretches of their lines, that a marker names; more are hard to read, and cost what they save.
MOST_FILES = 2
MOST_SPANS = 4
# Stretches at its sources that a marker names for lines that do not stand in one piece there: of 4, max saves a tenth
# of a point less, of any number 0.03 points more, in markers of hundreds of characters.
MOST_THERE = 8
# Runs of one marker: all are described again with each that is added. The recordings have 18.
MOST_MATCHES = 100


@dataclass(frozen=True, slots=True)
class LinesThere:
    """Omitted lines at one source: their runs, as the source shows them in one form."""

    matches: Sequence[Match]
    form: str  # how the source shows them, if not as this output does
    spans: Sequence[Span]  # what a marker names: lines of the file if all have numbers there, or of the source's text


@dataclass(frozen=True, slots=True)
class Omission:
    """Output lines low to high - 1 that may be omitted, and the runs that say where they are."""

    low: int
    high: int
    matches: Sequence[Match]


def make_omissions(matches: Sequence[Match]) -> tuple[Omission, ...]:
    """Join adjacent runs to one omission, as long as one marker can describe them."""
    groups: list[list[Match]] = []
    for match in sorted(matches, key=lambda r: r.low):
        if groups and groups[-1][-1].high == match.low and describe([*groups[-1], match]):
            groups[-1].append(match)
        else:
            groups.append([match])
    return tuple(Omission(group[0].low, group[-1].high, group) for group in groups)


def describe(matches: Sequence[Match]) -> list[LinesThere] | None:
    """Return what one marker says of where these runs are, a source each. Return None if no marker can say of them all
    that it has to, or if it would be too long."""
    if len(matches) > MOST_MATCHES or (any(map(is_bare, matches)) and named_lines(matches) is None):
        return None
    groups: dict[tuple[str, Origin, str], list[Match]] = {}
    for match in matches:
        event = match.visible.event
        groups.setdefault((event.call_id, event.origin, _form(match)), []).append(match)
    out: list[LinesThere] = []
    for (_, _, form), theirs in groups.items():
        spans = _spans_there(theirs, matches)
        if spans is None:
            return None
        out.append(LinesThere(theirs, form, spans))
    is_short = sum(len(there.spans) for there in out) <= MOST_THERE
    texts = {(call_id, origin) for call_id, origin, _ in groups}
    return out if is_short and len(texts) <= marker.MOST_SOURCES else None


def _form(match: Match) -> str:
    """Return how the source shows the lines, if their prefix there differs from the one here."""
    there = match.visible.mapped.sep
    if there is not None and there.startswith(DIFF):
        return "within a diff"
    return "without numbers" if is_bare(match) else ""


def _spans_there(matches: Sequence[Match], of: Sequence[Match]) -> list[Span] | None:
    """Return the lines that the marker of all the runs `of` has to name at one source. They are numbers in the file if
    these differ from the numbers here, and places in the source's text if the lines are not in one piece there. Return
    None if it cannot name them."""
    is_consecutive = len(spans_of((source_line(match), match) for match in matches)) == 1
    moved = [match for match in matches if number_there(match) not in (0, number_here(match))]
    if all(map(number_there, matches)):
        if moved:
            return spans_of((number_there(match), match) for match in matches)
        return [] if is_consecutive or named_lines(of) is not None else None
    if is_consecutive:
        return []
    if any(match.mapped.sep is not None for match in moved) or not all(map(shown_line, matches)):
        return None  # the numbers differ, and the marker could name only the places; or their places are not known
    return spans_of((shown_line(match), match) for match in matches)


def named_lines(matches: Sequence[Match]) -> dict[str, Spans] | None:
    """The lines of each file that the runs cover, if all are known, none occurs twice, and few enough to name."""
    spans: dict[str, list[Span]] = {}
    for match in matches:
        if len(match.mapped.keys) != 1 or not match.mapped.first:
            return None
        spans.setdefault(match.mapped.keys[0], []).append(file_span(match))
    if any(a[1] >= b[0] for found in spans.values() for a, b in itertools.pairwise(found)):
        return None
    merged = {path: merge_spans(found) for path, found in spans.items()}
    return merged if len(merged) <= MOST_FILES and sum(map(len, merged.values())) <= MOST_SPANS else None


def count_chars(lines: Sequence[str], low: int, high: int) -> int:
    """The characters of lines low to high - 1, with their newlines."""
    return sum(map(len, lines[low:high])) + high - low


def file_span(match: Match) -> Span:
    """Return the numbers of the run's lines in the file."""
    start = match.mapped.first + match.low - match.mapped.at
    return start, start + match.high - match.low - 1


def is_bare(match: Match) -> bool:
    """True if the lines have numbers in front that are not to be seen at the source, so that the marker names them."""
    return match.mapped.sep is not None and not shows_numbers(match.visible.mapped.sep)


def number_here(match: Match) -> int:
    """The number of the run's first line in this output; 0 if unknown."""
    mapped = match.mapped
    return mapped.first and mapped.first + mapped.shift + match.low - mapped.at


def number_there(match: Match) -> int:
    """The same as the source has it."""
    mapped = match.visible.mapped
    return mapped.first and mapped.first + mapped.shift + match.at


def source_line(match: Match) -> int:
    """The number of the run's first line in the source's text."""
    return match.visible.mapped.at + match.at + 1


def shown_line(match: Match) -> int:
    """The same with what the host puts before that text; 0 if unknown, behind words of the host's own."""
    event, line = match.visible.event, source_line(match)
    return 0 if 0 <= _elided_at(match.visible.delivery) < line else line + event.head.count("\n")


@lru_cache(maxsize=4)  # it keeps their texts
def _elided_at(delivery: Delivery) -> int:
    """The index of the line that stands for what the host cut; -1 if there is none."""
    before, found, _ = delivery.event.text.partition(f"\n{ELISION}\n")
    return before.count("\n") + 1 if found else -1


def spans_of(matches: Iterable[tuple[int, Match]]) -> list[Span]:
    """Runs, from the line of that number on, as spans in their own order: one after the other where they go on."""
    out: list[Span] = []
    for start, match in matches:
        end = start + match.high - match.low - 1
        if out and out[-1][1] + 1 == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out
