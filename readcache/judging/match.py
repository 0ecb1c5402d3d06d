"""Lays claims over a real output: which of its lines are which lines of which files.

The result is a guess still, but one that fits the output: a wrong piece can only lose a saving, because `cover`
compares the bytes of every line before anything is left out. Lines that no claim explains belong to no piece.

Borders inside an output come from literal text (`echo ---`), from line numbers that the output itself shows, and from
lengths that are known and fit (`sed -n 1,40p a; cat b` printed 50 lines). Any other stretch becomes one piece of
several keys with unknown numbers, and coverage finds the lines by their text. To guess more bought nothing; without
the lengths a restore plan knew less (62.9 instead of 63.6 % of what was read again), and markers named no file's lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fnmatch import fnmatchcase

from readcache.model.claims import Anything, Claim, FileLines, Literal, Range, glob_stem
from readcache.model.events import Piece
from readcache.model.text import GREP, count_lines, split_lines, split_number
from readcache.model.view import View

# A glob or an open border names at most this many files; beyond, coverage by text would cost more than it finds.
MOST_KEYS = 12


def match(claims: Sequence[Claim], lines: Sequence[str], view: View) -> tuple[Piece, ...]:
    """The pieces of an output, in order."""
    return tuple(_lay(tuple(claims), lines, 0, len(lines), view))


def _lay(claims: tuple[Claim, ...], lines: Sequence[str], low: int, high: int, view: View) -> list[Piece]:
    """Pieces of lines[low:high] by `claims`, which are believed to have printed just these."""
    if low >= high or not claims:
        return []
    for k, claim in enumerate(claims):
        if isinstance(claim, Literal) and claim.text.strip():
            text = split_lines(claim.text)
            at = _find(text, lines, low, high)
            if at is None:
                return _lay(claims[:k] + claims[k + 1 :], lines, low, high, view)
            before = _lay(claims[:k], lines, low, at, view)
            return before + _lay(claims[k + 1 :], lines, at + len(text), high, view)
    first, last = claims[0], claims[-1]
    if len(claims) == 1:
        return _place(first, lines, low, high, view) if isinstance(first, FileLines) else []
    if isinstance(first, Anything) and len(claims) == 2 and isinstance(last, FileLines) and last.sep is not None:
        return _place(last, lines, low, high, view)  # numbers tell their place wherever they stand
    if isinstance(first, FileLines) and first.sep is not None:
        pieces = _first_run(_place(first, lines, low, high, view))
        end = pieces[-1].at + pieces[-1].count if pieces else low
        return pieces + _lay(claims[1:], lines, end, high, view)
    return _lay_raw(claims, lines, low, high, view)


def _find(text: list[str], lines: Sequence[str], low: int, high: int) -> int | None:
    for at in range(low, high - len(text) + 1):
        if lines[at] == text[0] and list(lines[at : at + len(text)]) == text:
            return at
    return None


def _first_run(pieces: list[Piece]) -> list[Piece]:
    """The first numbered pieces, which follow one another without a stranger between and with rising numbers."""
    for n, (a, b) in enumerate(itertools.pairwise(pieces), 1):
        if a.at + a.count != b.at or b.first <= a.first:
            return pieces[:n]
    return pieces


# ---------------------------------------------------------------- one claim


def _place(claim: FileLines, lines: Sequence[str], low: int, high: int, view: View) -> list[Piece]:
    """Pieces of lines[low:high], all of which `claim` is believed to have printed."""
    keys = _expand(claim.keys, view)
    if claim.sep is not None:
        return _place_numbered(claim, keys, lines, low, high)
    if claim.ranges is None or len(keys) != 1:
        return [Piece(keys, low, high - low)]
    return _place_raw(claim.ranges, keys, low, high)


def _place_raw(ranges: tuple[Range, ...], keys: tuple[str, ...], low: int, high: int) -> list[Piece]:
    out, at = [], low
    for start, end in ranges:
        count = high - at if end is None else min(end - start + 1, high - at)
        if count <= 0:
            break
        out.append(Piece(keys, at, count, start, eof=at + count == high and (end is None or count < end - start + 1)))
        at += count
    if at < high:  # more lines than the command can print: something else spoke too, and who said what is open
        return [Piece(keys, low, high - low)]
    return out


def _place_numbered(claim: FileLines, keys: tuple[str, ...], lines: Sequence[str], low: int, high: int) -> list[Piece]:
    """Pieces of the lines whose numbers rise one by one and are claimed."""
    sep = GREP if claim.gaps and claim.sep == ":" else claim.sep
    assert sep is not None
    out: list[Piece] = []
    start, first, number = low, 0, 0
    for at in range(low, high + 1):
        pair = split_number(lines[at], sep) if at < high else None
        if pair is not None and first and pair[0] == number + 1:
            number += 1
            continue
        if first:
            out.append(Piece(keys, start, at - start, first - claim.shift, sep, claim.shift))
            first = 0
        if pair is not None and _is_claimed(pair[0] - claim.shift, claim):
            start, first, number = at, pair[0], pair[0]
    if claim.gaps:
        out = [piece for piece in out if piece.count > 1]  # lone hits can never make up for a marker
    return out


def _is_claimed(number: int, claim: FileLines) -> bool:
    return any(start <= number and (end is None or number <= end) for start, end in claim.ranges or ((1, None),))


def _expand(keys: tuple[str, ...], view: View) -> tuple[str, ...]:
    """A glob stands for itself and for the files seen before that it matches."""
    out = list(keys)
    for key in keys:
        stem = glob_stem(key)
        if stem is not None:
            out += [k for k in view.known_keys(stem) if k not in out and fnmatchcase(k, key)]
    return tuple(out[:MOST_KEYS])


# ---------------------------------------------------------------- several raw claims in a row


def _lay_raw(claims: tuple[Claim, ...], lines: Sequence[str], low: int, high: int, view: View) -> list[Piece]:
    """Two or more claims without a landmark between: they are told apart where the lengths of all, or of all but one,
    are known and fit the output."""
    lengths: list[int | None] = []
    for claim in claims:
        if isinstance(claim, Literal):
            lengths.append(count_lines(claim.text))
        elif isinstance(claim, FileLines) and claim.sep is None and claim.ranges is not None and len(claim.keys) == 1:
            lengths.append(_length(claim.ranges, view.key(claim.keys[0]).total))
        else:
            return _mixed(claims, low, high, view)
    rest = high - low - sum(length or 0 for length in lengths)
    unknown = lengths.count(None)
    if rest < 0 or unknown > 1 or (rest and not unknown):
        return _mixed(claims, low, high, view)
    out: list[Piece] = []
    for claim, length in zip(claims, lengths, strict=True):
        end = low + (rest if length is None else length)
        out += _lay((claim,), lines, low, end, view)
        low = end
    return out


def _length(ranges: tuple[Range, ...], total: int | None) -> int | None:
    """How many lines the ranges hold of a file of `total` lines; None when that takes a length that is not known."""
    ends = [end if total is None else min(end or total, total) for _, end in ranges]
    if None in ends:
        return None
    return sum(max(0, (end or 0) - start + 1) for (start, _), end in zip(ranges, ends, strict=True))


def _mixed(claims: tuple[Claim, ...], low: int, high: int, view: View) -> list[Piece]:
    """Borders unknown: one piece for all the files, numbers unknown."""
    keys = tuple(dict.fromkeys(k for c in claims if isinstance(c, FileLines) for k in _expand(c.keys, view)))
    return [Piece(keys[:MOST_KEYS], low, high - low)] if keys else []
