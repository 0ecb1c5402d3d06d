"""Coverage: which lines of an output already stand before the reader, byte for byte, and where.

Bytes decide here. Parsing never decides alone. A line is covered only if the visible line named as its source equals
it: the whole body and, if the output shows numbers, a number at the source too.

Here lines of files are looked for at the numbers that they have, which also tells whether a file changed; `search` then
looks for any line anywhere, by what it says.

A `Run` is a stretch of output lines that stands in one piece at one source.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from readcache.model.events import Piece
from readcache.model.key_view import Delivery, KeyView, Reference
from readcache.model.text import bodies, shows_numbers
from readcache.model.view import View

# How many of a key's newest deliveries to search, so that a call's cost does not grow with the session.
MOST_REFERENCES = 48


@dataclass(frozen=True, slots=True)
class Run:
    """Output lines low to high - 1 (0-based) stand at `reference`, from line `at` (0-based) of its piece on."""

    low: int
    high: int
    reference: Reference
    at: int
    piece: Piece


@dataclass(slots=True)
class Coverage:
    """What was found for an output, and why more was not."""

    runs: list[Run] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)  # keys whose visible lines disagree with this output
    written: set[str] = field(default_factory=set)  # keys with visible lines from before the agent's own write
    outdated: set[str] = field(default_factory=set)  # the same, from before a change seen earlier
    unnumbered: bool = False  # lines are visible, but without the numbers that this output shows


Allow = Callable[[Delivery], bool]


def cover(view: View, lines: Sequence[str], pieces: Iterable[Piece], allow: Allow, *, delta: bool) -> Coverage:
    """Runs for all pieces of an output whose numbers are known, in order and disjoint.

    `allow(delivery)`: may a marker point at it? Without `delta` a key that was written or that disagrees with its
    visible lines has no runs.
    """
    found = Coverage()
    for piece in pieces:
        texts = bodies(lines[piece.at : piece.at + piece.count], piece.sep)
        for key in piece.keys:
            known = view.key(key)
            _note_staleness(known, key, allow, found)
            if piece.first:
                exact, disagree = _by_number(view, known, piece, texts, allow)
                if disagree:
                    found.changed.add(key)
                found.runs += exact
                found.unnumbered |= not disagree and not exact and _lacks_numbers(known, piece, allow)
    if not delta:
        found.runs = [run for run in found.runs if not found.changed.intersection(run.piece.keys)]
    return found


def _note_staleness(known: KeyView, key: str, allow: Allow, found: Coverage) -> None:
    newest = itertools.islice(reversed(known.stale), MOST_REFERENCES)
    if known.invalid is not None and any(allow(reference.delivery) for reference in newest):
        (found.written if known.invalid.written else found.outdated).add(key)


def _lacks_numbers(known: KeyView, piece: Piece, allow: Allow) -> bool:
    overlaps = known.numbered.overlaps(piece.first, piece.first + piece.count - 1)
    return any(allow(reference.delivery) and not can_stand_for(reference, piece) for _, _, reference in overlaps)


def can_stand_for(reference: Reference, piece: Piece) -> bool:
    """Numbered lines stand for raw ones; raw ones for numbered ones where the numbers of both are known, so that the
    marker can name them.

    `12: x` is stood for by `12| x` but not by `12→x` or `x`, which show one blank less.
    """
    ours, theirs = piece.sep, reference.piece.sep
    if ours is None:
        return True
    if theirs is not None and shows_numbers(theirs):
        return not ours.endswith(" ") or theirs.endswith(" ")
    is_named = len(piece.keys) == 1 and piece.first > 0 < reference.piece.first and not piece.shift
    return is_named and not ours.endswith(" ")


def _has_same_numbers(reference: Reference, piece: Piece) -> bool:
    """True if the lines there are numbered as they are here, so that line 5 may stand for line 5."""
    are_shown = piece.sep is not None and reference.piece.sep is not None
    return can_stand_for(reference, piece) and (not are_shown or reference.piece.shift == piece.shift)


def _by_number(view: View, known: KeyView, piece: Piece, texts: list[str], allow: Allow) -> tuple[list[Run], bool]:
    """Runs of the very same line numbers; and whether any visible line differs from the output's."""
    runs: list[Run] = []
    disagree = False
    last = piece.first + piece.count - 1
    for start, end, reference in known.numbered.overlaps(piece.first, last):
        if not allow(reference.delivery):
            continue
        theirs = view.bodies(reference)
        shift = piece.first - reference.piece.first  # their index minus ours
        low, high = start - piece.first, end - piece.first + 1
        for a, b, same in _stretches(texts[low:high], theirs[low + shift : high + shift], low):
            if same and _has_same_numbers(reference, piece):
                runs.append(Run(piece.at + a, piece.at + b, reference, a + shift, piece))
            elif not same and not _is_cut(texts, theirs, a, b, shift):
                disagree = True
    return _in_one_place(view, known, piece, texts, allow, runs), disagree


def _in_one_place(
    view: View, known: KeyView, piece: Piece, texts: list[str], allow: Allow, runs: list[Run]
) -> list[Run]:
    """Neighbouring runs of several deliveries become one where a single delivery holds all their lines: the reader
    has one place to look at, and the marker one to name."""
    groups: list[list[Run]] = []
    for run in runs:
        if groups and groups[-1][-1].high == run.low:
            groups[-1].append(run)
        else:
            groups.append([run])
    for group in groups:
        low, high = group[0].low, group[-1].high
        for reference in itertools.islice(known.references(), MOST_REFERENCES if len(group) > 1 else 0):
            at = piece.first + low - piece.at - reference.piece.first
            inside = reference.piece.first and at >= 0 and at + high - low <= reference.piece.count
            if not inside or known.is_stale(reference.delivery) or not allow(reference.delivery):
                continue
            same = view.bodies(reference)[at : at + high - low] == texts[low - piece.at : high - piece.at]
            if same and _has_same_numbers(reference, piece):
                group[:] = [Run(low, high, reference, at, piece)]
                break
    return [run for group in groups for run in group]


def differs(view: View, known: KeyView, piece: Piece, texts: list[str]) -> bool:
    """True if a visible line of the key, as far as is known, differs from these."""
    return _by_number(view, known, piece, texts, lambda _: True)[1]


def _stretches(ours: list[str], theirs: list[str], low: int) -> Iterator[tuple[int, int, bool]]:
    """(low, high, are equal) for each stretch of lines, of which the first is line `low`."""
    if ours == theirs:  # the commonest case, at the speed of C
        yield low, low + len(ours), True
        return
    for flag, group in itertools.groupby(map(operator.eq, ours, theirs)):
        high = low + sum(1 for _ in group)
        yield low, high, flag
        low = high


def _is_cut(ours: list[str], theirs: list[str], low: int, high: int, shift: int) -> bool:
    """True if the very last line alone differs, because one side was cut off (`head -c`, a harness's limit)."""
    if high - low != 1 or high not in (len(ours), len(theirs) - shift):
        return False
    a, b = ours[low], theirs[low + shift]
    return a != b and (a.startswith(b) or b.startswith(a))
