"""Coverage: which lines of an output already stand before the reader, byte for byte, and where.

Bytes decide here. Whatever parsing believed, a line counts as covered only when the visible line that is named as its
source equals it: the whole body and, where the output shows numbers, a number in front of the source too.

A `Run` is a stretch of output lines that stands in one piece at one source.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from readcache.model.events import Piece
from readcache.model.key_view import Delivery, KeyView, Reference
from readcache.model.text import bodies, is_blank
from readcache.model.view import View

# A run found by its text alone needs this many lines that say something (see text.is_blank); fewer match by chance.
SOLID_LINES = 2
# A line that says something but stands in more places than this in one output is no landmark ("return None").
MOST_PLACES = 8
# Newest deliveries of a key that are searched by text; keeps a call's cost apart from the session's length.
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
    """Runs for all pieces of an output, in order and disjoint.

    `allow(delivery)`: may a marker point at it? Without `delta` a key that was written or that
    disagrees with its visible lines has no runs.
    """
    found = Coverage()
    for piece in pieces:
        texts = bodies(lines[piece.at : piece.at + piece.count], piece.sep)
        runs: list[Run] = []
        for key in piece.keys:
            known = view.key(key)
            _note_staleness(known, key, allow, found)
            if piece.first:
                exact, disagree = _by_number(view, known, piece, texts, allow)
                if disagree:
                    found.changed.add(key)
                if not disagree or delta:
                    runs += exact
                found.unnumbered |= not disagree and not exact and _lacks_numbers(known, piece, allow)
        if delta or not found.changed.intersection(piece.keys):
            runs += _by_text(view, piece, texts, allow, taken=runs, delta=delta)
        found.runs += sorted(runs, key=lambda run: run.low)
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
    """Numbered lines stand for raw ones; raw ones do not stand for numbered ones.

    `12: x` is stood for by `12| x` but not by `12→x`, which shows one blank less.
    """
    ours, theirs = piece.sep, reference.piece.sep
    return ours is None or (theirs is not None and (not ours.endswith(" ") or theirs.endswith(" ")))


def _by_number(view: View, known: KeyView, piece: Piece, texts: list[str], allow: Allow) -> tuple[list[Run], bool]:
    """Runs of the very same line numbers; and whether any visible line differs from the output's."""
    runs: list[Run] = []
    disagree = False
    last = piece.first + piece.count - 1
    for start, end, reference in known.numbered.overlaps(piece.first, last):
        if not allow(reference.delivery):
            continue
        theirs = view.bodies(reference)
        stands = can_stand_for(reference, piece) and (piece.sep is None or reference.piece.shift == piece.shift)
        shift = piece.first - reference.piece.first  # their index minus ours
        low, high = start - piece.first, end - piece.first + 1
        for a, b, same in _stretches(texts, theirs, low, high, shift):
            if same and stands:
                runs.append(Run(piece.at + a, piece.at + b, reference, a + shift, piece))
            elif not same and not _is_cut(texts, theirs, a, b, shift):
                disagree = True
    return _in_one_place(view, known, piece, texts, allow, runs), disagree


def _in_one_place(
    view: View, known: KeyView, piece: Piece, texts: list[str], allow: Allow, runs: list[Run]
) -> list[Run]:
    """Neighbouring runs of several deliveries become one where a single delivery holds all their lines: the reader
    has one place to look at, and the marker one to name."""
    out: list[Run] = []
    for group in _neighbours(runs):
        low, high = group[0].low, group[-1].high
        if len(group) > 1:
            for reference in itertools.islice(known.references(), MOST_REFERENCES):
                at = piece.first + low - piece.at - reference.piece.first
                inside = reference.piece.first and at >= 0 and at + high - low <= reference.piece.count
                if not inside or known.is_stale(reference.delivery) or not allow(reference.delivery):
                    continue
                if not can_stand_for(reference, piece) or (piece.sep and reference.piece.shift != piece.shift):
                    continue
                if view.bodies(reference)[at : at + high - low] == texts[low - piece.at : high - piece.at]:
                    group = [Run(low, high, reference, at, piece)]
                    break
        out += group
    return out


def _neighbours(runs: list[Run]) -> list[list[Run]]:
    out: list[list[Run]] = []
    for run in runs:
        if out and out[-1][-1].high == run.low:
            out[-1].append(run)
        else:
            out.append([run])
    return out


def differs(view: View, known: KeyView, piece: Piece, texts: list[str]) -> bool:
    """Does any visible line of the key, as far as is known, differ from these?"""
    return _by_number(view, known, piece, texts, lambda _: True)[1]


def _stretches(ours: list[str], theirs: list[str], low: int, high: int, shift: int) -> list[tuple[int, int, bool]]:
    """ours[low:high] against theirs shifted: (low, high, equal) stretches."""
    if ours[low:high] == theirs[low + shift : high + shift]:
        return [(low, high, True)]
    out: list[tuple[int, int, bool]] = []
    at = low
    while at < high:
        same = ours[at] == theirs[at + shift]
        end = at + 1
        while end < high and (ours[end] == theirs[end + shift]) == same:
            end += 1
        out.append((at, end, same))
        at = end
    return out


def _is_cut(ours: list[str], theirs: list[str], low: int, high: int, shift: int) -> bool:
    """Does only the very last line differ, and only because one side was cut off (`head -c`, a harness's limit)?"""
    if high - low != 1 or high not in (len(ours), len(theirs) - shift):
        return False
    a, b = ours[low], theirs[low + shift]
    return a != b and (a.startswith(b) or b.startswith(a))


# ---------------------------------------------------------------- by text


def _by_text(view: View, piece: Piece, texts: list[str], allow: Allow, *, taken: list[Run], delta: bool) -> list[Run]:
    """Runs for lines that `taken` leaves open, found by what they say.

    Where both sides know their numbers, equal text at another number is a shifted file: only `delta` may use that.
    """
    open_lines = [True] * piece.count
    for run in taken:
        open_lines[run.low - piece.at : run.high - piece.at] = [False] * (run.high - run.low)
    if not any(open_lines):
        return []
    references = [r for r in _candidates(view, piece, delta) if allow(r.delivery) and can_stand_for(r, piece)]
    if not references:
        return []
    found = find_runs(texts, open_lines, [(r, view.bodies(r)) for r in references[:MOST_REFERENCES]])
    return [Run(piece.at + a, piece.at + b, reference, at, piece) for a, b, reference, at in found]


def _candidates(view: View, piece: Piece, delta: bool) -> list[Reference]:
    out: list[Reference] = []
    for key in dict.fromkeys(_with_namesakes(view, piece.keys) if delta else piece.keys):
        known = view.key(key)
        references = known.references() if delta or not piece.first else reversed(known.loose)
        for reference in itertools.islice(references, MOST_REFERENCES - len(out)):
            if known.is_stale(reference.delivery) and not delta:
                break
            out.append(reference)
        if len(out) >= MOST_REFERENCES:
            break
    return out


def _with_namesakes(view: View, keys: Iterable[str]) -> list[str]:
    """The keys and those of files of the same name elsewhere: copied, moved, or reached by another path."""
    out = list(keys)
    for key in keys:
        out += view.namesakes(key)
    return out


def find_runs(
    ours: list[str], open_lines: list[bool], sources: Iterable[tuple[Reference, list[str]]]
) -> list[tuple[int, int, Reference, int]]:
    """(low, high, source, at): disjoint runs of `ours` over open lines; long runs first, newer sources before older.

    A run has at least `SOLID_LINES` lines that say something, or it is the whole of `ours`.
    """
    places: dict[str, list[int]] = {}
    for at, line in enumerate(ours):
        if open_lines[at] and not is_blank(line):
            places.setdefault(line, []).append(at)
    landmarks = {line: at for line, at in places.items() if len(at) <= MOST_PLACES}
    found: list[tuple[int, int, Reference, int]] = []
    for reference, theirs in sources:
        found += [(low, high, reference, at) for low, high, at in _common_runs(ours, theirs, landmarks)]
    found.sort(key=lambda run: run[0] - run[1])
    out: list[tuple[int, int, Reference, int]] = []
    for low, high, reference, at in found:
        for a, b in _open_stretches(open_lines, low, high):
            if (a, b) == (0, len(ours)) or _is_solid(ours, a, b):
                out.append((a, b, reference, at + a - low))
                open_lines[a:b] = [False] * (b - a)
    return out


def _common_runs(ours: list[str], theirs: list[str], landmarks: dict[str, list[int]]) -> list[tuple[int, int, int]]:
    """(low, high, at) for each longest common run through a landmark."""
    out: list[tuple[int, int, int]] = []
    reached: dict[int, int] = {}  # diagonal -> where in `theirs` its last run ended
    for at, line in enumerate(theirs):
        for place in landmarks.get(line, ()):
            diagonal = place - at
            if reached.get(diagonal, 0) > at:
                continue
            low, high = at, at + 1
            while low > 0 and low + diagonal > 0 and theirs[low - 1] == ours[low - 1 + diagonal]:
                low -= 1
            while high < len(theirs) and high + diagonal < len(ours) and theirs[high] == ours[high + diagonal]:
                high += 1
            reached[diagonal] = high
            out.append((low + diagonal, high + diagonal, low))
    return out


def _open_stretches(open_lines: list[bool], low: int, high: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    at = low
    while at < high:
        if not open_lines[at]:
            at += 1
            continue
        end = at
        while end < high and open_lines[end]:
            end += 1
        out.append((at, end))
        at = end
    return out


def _is_solid(lines: list[str], low: int, high: int) -> bool:
    solid = 0
    for at in range(low, high):
        solid += not is_blank(lines[at])
        if solid == SOLID_LINES:
            return True
    return False
