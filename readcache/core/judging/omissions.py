"""Join matches into omissions. One marker can describe each omission."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from readcache.core.judging import marker
from readcache.core.judging.cover import Match
from readcache.core.model.call import shown_label
from readcache.core.model.events import Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.spans import Span, Spans, merge_spans
from readcache.core.model.text import DIFF, ELISION, bodies, shows_numbers, split_lines

# Files, spans of their lines, and spans at the sources that a marker names. More are hard to read. With eight spans at
# the sources, `max` saves up to 0.3 points more of all output.
MOST_FILES = 2
MOST_SPANS = 3
# Matches of one marker: all are described again with each one that is added. The recordings have at most 18.
MOST_MATCHES = 100
# Lines at an end of an omission that are elsewhere at the sources. To name fewer takes as many characters.
LEAST_AT_AN_END = 5

_FILE_HEADING = re.compile(r".+? lines? \d+(?:-\d+)?(?=: | \(|$)")


@dataclass(frozen=True, slots=True)
class LinesThere:
    """Omitted lines at one source: their matches, in one form of the source."""

    matches: Sequence[Match]
    form: str  # how the source shows them, if not as this output does
    spans: Sequence[Span]  # a marker names these: lines of the file if all have numbers there, or of the source's text


@dataclass(frozen=True, slots=True)
class Omission:
    """Output lines low to high - 1 that may be omitted, and the matches that locate their sources."""

    low: int
    high: int
    matches: Sequence[Match]


def make_omissions(matches: Sequence[Match]) -> tuple[Omission, ...]:
    """Join adjacent matches into one omission, as long as one marker can describe them."""
    groups: list[list[Match]] = []
    for match in sorted(matches, key=lambda r: r.low):
        if groups and groups[-1][-1].high == match.low and describe([*groups[-1], match]):
            groups[-1].append(match)
        else:
            groups.append([match])
    trimmed = map(_without_scraps, groups)
    return tuple(Omission(group[0].low, group[-1].high, group) for group in trimmed)


def _without_scraps(group: list[Match]) -> list[Match]:
    """Return the matches without short ones at the ends that are elsewhere at the sources. To name them takes as
    long."""
    while len(group) > 1 and _is_short(group[0]) and not _goes_on(group[0], group[1]):
        group = group[1:]
    while len(group) > 1 and _is_short(group[-1]) and not _goes_on(group[-2], group[-1]):
        group = group[:-1]
    return group


def _is_short(match: Match) -> bool:
    return match.high - match.low < LEAST_AT_AN_END


def _goes_on(match: Match, after: Match) -> bool:
    """Return True if `after` follows `match` at the source, too."""
    end = source_line(match) + match.high - match.low
    return match.visible.delivery is after.visible.delivery and source_line(after) == end


def leave_text_at_end(omissions: Sequence[Omission], lines: Sequence[str]) -> tuple[Omission, ...]:
    """Return the omissions. If only line numbers would follow the last one, let it end before the last line with text.

    A read tool ends a file with the number of an empty line, which the source may not show.
    """
    last = omissions[-1] if omissions else None
    sep = last.matches[-1].mapped.sep if last else None
    if last is None or sep is None or last.high == len(lines) or not _are_numbers(lines[last.high :], sep):
        return tuple(omissions)
    high = last.high - 1
    while high > last.low and _are_numbers(lines[high : high + 1], sep):
        high -= 1
    matches = [replace(match, high=min(match.high, high)) for match in last.matches if match.low < high]
    return (*omissions[:-1], *([Omission(last.low, high, matches)] if matches else []))


def _are_numbers(lines: Sequence[str], sep: str) -> bool:
    """Return True if the lines are numbers and nothing else. A host may have removed what follows the last number."""
    return all(
        not body.strip() or (body == line and line.strip().isdigit())
        for line, body in zip(lines, bodies(lines, sep), strict=True)
    )


def describe(matches: Sequence[Match]) -> list[LinesThere] | None:
    """Return the lines that one marker names for these matches, with one entry for each source and form.

    Return None if no marker can describe all of them, or if it would be too long. A marker names the numbers of one
    file only: a reader cannot tell which of two files a number belongs to.
    """
    if len(matches) > MOST_MATCHES or (any(map(_needs_number, matches)) and len(named_lines(matches) or ()) != 1):
        return None
    if any(map(_is_numbered, matches)) and not all(match.mapped.keys for match in matches):
        return None  # the marker would count lines of the output, and the reader sees numbers of the file
    groups: dict[tuple[str, Origin, int, str], list[Match]] = {}
    for match in matches:
        event = match.visible.event
        heading = -1 if number_there(match) else _heading_above(match)  # a file and its numbers need no heading
        groups.setdefault((event.call_id, event.origin, heading, _form(match)), []).append(match)
    out: list[LinesThere] = []
    for (*_, form), theirs in groups.items():
        spans = _spans_there(theirs, matches)
        if spans is None:
            return None
        out.append(LinesThere(theirs, form, spans))
    is_short = sum(max(1, len(there.spans)) for there in out) <= MOST_SPANS
    texts = {group[:3] for group in groups}
    labels = {(group[1:3], shown_label(theirs[0].visible.event.label)) for group, theirs in groups.items()}
    return out if is_short and len(labels) == len(texts) <= marker.MOST_SOURCES else None


def _is_numbered(match: Match) -> bool:
    """Return True if the reader sees the numbers of the lines in their file."""
    return match.mapped.first > 0 and shows_numbers(match.mapped.sep)


def _needs_number(match: Match) -> bool:
    """Return True if the lines have other numbers here than at the source, so that the marker has to name them."""
    return match.mapped.sep is not None and (is_bare(match) or number_there(match) != number_here(match))


def _form(match: Match) -> str:
    """Return how the source shows the lines, if their prefix there differs from the one here. Otherwise return ""."""
    there = match.visible.mapped.sep
    if there is not None and there.startswith(DIFF):
        return "within a diff"
    return "without numbers" if is_bare(match) else ""


def _spans_there(matches: Sequence[Match], of: Sequence[Match]) -> list[Span] | None:
    """Return the lines that the marker of all the matches `of` has to name at one source.

    They are numbers in the file if these differ from the numbers here. They are line numbers of the source's text if
    the lines are not consecutive there. Return [] if no numbers are necessary, and None if the marker cannot name the
    lines.
    """
    is_consecutive = len(spans_of((source_line(match), match) for match in matches)) == 1
    moved = [match for match in matches if number_there(match) not in (0, number_here(match))]
    if all(map(number_there, matches)):
        if moved:
            return spans_of((number_there(match), match) for match in matches)
        return [] if is_consecutive or named_lines(of) is not None else None
    if is_consecutive and not any(match.visible.mapped.shift for match in matches):
        return []
    if any(match.mapped.sep is not None for match in moved) or not all(map(shown_line, matches)):
        return None  # the numbers differ, but the marker could only name lines of the text; or even these are not known
    return spans_of((shown_line(match), match) for match in matches)


def named_lines(matches: Sequence[Match]) -> dict[str, Spans] | None:
    """Return the lines of each file that the matches cover.

    Return None if some are not known, if one occurs twice, or if there are too many to name. Also return None if lines
    of another file are between lines of one file, because the marker names the lines in order.
    """
    spans: dict[str, list[Span]] = {}
    for match in matches:
        path = match.mapped.keys[0] if match.mapped.first and len(match.mapped.keys) == 1 else ""
        if not path or (path in spans and path != next(reversed(spans))):
            return None
        spans.setdefault(path, []).append(file_span(match))
    if any(a[1] >= b[0] for found in spans.values() for a, b in itertools.pairwise(found)):
        return None
    merged = {path: merge_spans(found) for path, found in spans.items()}
    return merged if len(merged) <= MOST_FILES and sum(map(len, merged.values())) <= MOST_SPANS else None


def count_chars(lines: Sequence[str], low: int, high: int) -> int:
    """Return the number of characters of lines low to high - 1, including their newlines."""
    return sum(map(len, lines[low:high])) + high - low


def file_span(match: Match) -> Span:
    """Return the numbers of the match's lines in the file."""
    start = match.mapped.first + match.low - match.mapped.at
    return start, start + match.high - match.low - 1


def is_bare(match: Match) -> bool:
    """Return True if the lines have numbers here but not at the source, so that the marker has to name the numbers."""
    return match.mapped.sep is not None and not shows_numbers(match.visible.mapped.sep)


def number_here(match: Match) -> int:
    """Return the number of the match's first line as this output shows it, or 0 if it is not known."""
    mapped = match.mapped
    return mapped.first and mapped.first + mapped.shift + match.low - mapped.at


def number_there(match: Match) -> int:
    """Return the number of the match's first line in the file, as the source shows it.

    Return 0 if it is not known, or if the source shows a number that neither the file nor this output has for it.
    """
    mapped = match.visible.mapped
    number = mapped.first and mapped.first + mapped.shift + match.at
    return number if not mapped.shift or number == number_here(match) else 0


def source_line(match: Match) -> int:
    """Return the line number (1-based) of the match's first line in the source's text."""
    return match.visible.mapped.at + match.at + 1


def shown_line(match: Match) -> int:
    """Return the line number of the match's first line in the source's text as the host shows it.

    Lines that the host puts before that text count. Return 0 if the number is not known, because the line comes after
    the host's own notice about truncated lines.
    """
    event, line = match.visible.event, source_line(match)
    if (heading := _heading_above(match)) >= 0:
        return line - heading - 1
    return 0 if 0 <= _elided_at(match.visible.delivery) < line else line + event.head.count("\n")


def heading_of(match: Match) -> str:
    """Return the words of the heading that is above the lines in a restored section: the command, or the file and
    lines. Return "" for any other source, or if the heading is not known."""
    if (at := _heading_above(match)) < 0:
        return ""
    line = split_lines(match.visible.event.text)[at].lstrip("#").strip()
    of_file = _FILE_HEADING.match(line)
    return of_file[0].rpartition("/")[2] if of_file else line.partition("; ")[0]


def _heading_above(match: Match) -> int:
    """Return the index of the heading above the lines in a restored section; -1 if there is none."""
    delivery = match.visible.delivery
    if delivery.event.origin is not Origin.RESTORED:
        return -1
    headings = _headings(delivery)
    return headings[n - 1] if (n := bisect_left(headings, source_line(match) - 1)) else -1


@lru_cache(maxsize=4)
def _headings(delivery: Delivery) -> list[int]:
    """Return the indexes of the headings in a restored section, which begins with two of them. No other line of it
    begins as the second one does."""
    lines = split_lines(delivery.event.text)
    level = lines[1].partition(" ")[0] if len(lines) > 1 and lines[0].startswith("## ") else ""
    is_known = len(level) > len("##") and not level.strip("#")
    return [n for n, line in enumerate(lines) if line.startswith(f"{level} ")] if is_known else []


@lru_cache(maxsize=4)  # small, because the cache keeps their texts
def _elided_at(delivery: Delivery) -> int:
    """Return the index of the line that replaces lines that the host truncated, or -1 if there is none."""
    before, found, _ = delivery.event.text.partition(f"\n{ELISION}\n")
    return before.count("\n") + 1 if found else -1


def spans_of(matches: Iterable[tuple[int, Match]]) -> list[Span]:
    """Return the lines of matches as spans, in the given order. Each match comes with the number of its first line.

    Consecutive spans are joined.
    """
    out: list[Span] = []
    for start, match in matches:
        end = start + match.high - match.low - 1
        if out and out[-1][1] + 1 == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out
