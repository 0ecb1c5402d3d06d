"""Coverage: which lines of an output already stand before the reader, byte for byte, and where.

Bytes decide here. Whatever parsing believed, a line counts as covered only when the visible line that is named as its
source equals it: the whole body and, where the output shows numbers, a number in front of the source too.

A `Run` is a stretch of output lines that stands in one piece at one source.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from readcache.model.events import Piece
from readcache.model.key_view import Delivery, KeyView, Reference
from readcache.model.text import bodies, is_blank, shows_numbers
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
        equal = map(operator.eq, texts[low:high], theirs[low + shift : high + shift])
        for a, b, same in _stretches(equal, low):
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


def _stretches(flags: Iterable[bool], low: int) -> Iterator[tuple[int, int, bool]]:
    """(low, high, flag) for each stretch of equal flags; the first flag is that of line `low`."""
    for flag, group in itertools.groupby(flags):
        high = low + sum(1 for _ in group)
        yield low, high, flag
        low = high


def _is_cut(ours: list[str], theirs: list[str], low: int, high: int, shift: int) -> bool:
    """True if the very last line alone differs, because one side was cut off (`head -c`, a harness's limit)."""
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
    candidates = itertools.islice(_candidates(view, piece, delta), MOST_REFERENCES)
    references = [r for r in candidates if allow(r.delivery) and can_stand_for(r, piece)]
    if not references:
        return []
    found = find_runs(texts, open_lines, [(r, view.bodies(r)) for r in references])
    return [Run(piece.at + a, piece.at + b, reference, at, piece) for a, b, reference, at in found]


def _candidates(view: View, piece: Piece, delta: bool) -> Iterator[Reference]:
    """Where to look: with `delta` also in files of the same name elsewhere, which are copies or other paths to it."""
    keys = list(piece.keys)
    if delta:
        keys += [other for key in piece.keys for other in view.namesakes(key)]
    for key in dict.fromkeys(keys):
        known = view.key(key)
        for reference in known.references() if delta or not piece.first else reversed(known.loose):
            if known.is_stale(reference.delivery) and not delta:
                break
            yield reference


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
        for a, b, is_open in _stretches(open_lines[low:high], low):
            if is_open and ((a, b) == (0, len(ours)) or _is_solid(ours[a:b])):
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


def _is_solid(lines: list[str]) -> bool:
    solid = (line for line in lines if not is_blank(line))
    return len(list(itertools.islice(solid, SOLID_LINES))) == SOLID_LINES
