"""What flows through a pipe, as claims, and what a filter makes of it.

A stream is the claims about a program's output, in output order. Filters speak of *positions*: the first line of the
stream has position 1, whatever line of the file it is. Everything here is a function of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from readcache.model.claims import Anything, Claim, FileLines, Literal, Range, key_of, path_of

Claims = tuple[Claim, ...]

WHOLE: tuple[Range, ...] = ((1, None),)
ANYTHING: Claims = (Anything(),)


@dataclass(frozen=True, slots=True)
class Stream:
    """What a program finds on its stdin. `body`: the stream is just this text, from the command itself (a heredoc)."""

    claims: Claims = ANYTHING
    body: str | None = None


def literal_stream(text: str, body: str | None = None) -> Stream:
    """A stream of text that is known beforehand."""
    return Stream((Literal(text),) if text else (), body)


def select_lines(claims: Claims, positions: Sequence[Range]) -> Claims:
    """The lines at `positions` (in output order), or unknown lines when the stream's own lines are not known."""
    if tuple(positions) == WHOLE:
        return claims
    runs = _runs(claims)
    if runs is None:
        return unknown(claims)
    out: list[FileLines] = []
    for first, last in positions:
        before = 0
        for claim, start, end in runs:
            low = max(first - before, 1)
            high = None if last is None else last - before
            length = None if end is None else end - start + 1
            if length is not None:
                high = length if high is None else min(high, length)
            if high is None or low <= high:
                _append(out, claim, start + low - 1, None if high is None else start + high - 1)
            before += length or 0
    return tuple(out)


def tail(claims: Claims, count: int) -> Claims:
    """The last `count` lines: known when the stream's last line is, for a file that is long enough."""
    total = _length(claims)
    if total is None:
        return unknown(claims)
    return select_lines(claims, ((max(1, total - count + 1), total),)) if count and total else ()


def unknown(claims: Claims, *, gaps: bool = False) -> Claims:
    """Some of the stream's lines, which is not known; with `gaps` lines between may be missing."""
    if not claims:
        return ()
    files = [claim for claim in claims if isinstance(claim, FileLines)]
    numberings = {(file.sep, file.shift if file.sep else 0) for file in files}
    if len(files) < len(claims) or len(numberings) > 1:
        return ANYTHING
    keys = tuple(dict.fromkeys(key for file in files for key in file.keys))
    sep, shift = numberings.pop()
    gaps = sep is not None and (gaps or any(file.gaps or _has_holes(file) for file in files))
    return (FileLines(keys, None, sep, shift, gaps),)


def number(claims: Claims, sep: str, name: str, start: int = 1) -> Claims:
    """The stream with line numbers from `start` on in front of its lines; `name` is what the rendering is called.

    Where the numbers say nothing about lines of the file, it is a rendering like any other.
    """
    mine: list[Claim] = []
    for claim in claims:
        if not isinstance(claim, FileLines) or (mine and claim.keys != claims[0].keys):  # type: ignore[union-attr]
            break
        mine.append(claim)
    rest = claims[len(mine) :]
    runs = _runs(tuple(mine))
    if not mine or runs is None or any(claim.sep is not None for claim, _, _ in runs):
        return vary(claims, name)
    out: list[FileLines] = []
    at = start
    for claim, first, last in runs:
        _append(out, replace(claim, sep=sep, shift=at - first), first, last)
        at += 0 if last is None else last - first + 1
    return (*out, *vary(rest, name))


def vary(claims: Claims, name: str, *, line_by_line: bool = False) -> Claims:
    """A changed rendering, `name`, of the stream; `line_by_line` when it keeps the lines apart and in order."""
    if not line_by_line:
        claims = unknown(claims)
    return tuple(_vary_claim(claim, name, line_by_line) for claim in claims)


def piecewise(bounds: Iterable[int], prints: Callable[[int], tuple[int, bool]]) -> tuple[Range, ...] | None:
    """The positions that a line-number program prints, in order; None when it doubles many of them.

    `prints(n)` says how often line n is printed and whether the program stops after it; between two of the `bounds`
    (and between a bound and the number after it) it is constant.
    """
    marks = sorted({1, *(m for bound in bounds for m in (bound, bound + 1) if m > 1)})
    out: list[Range] = []
    for k, first in enumerate(marks):
        last = marks[k + 1] - 1 if k + 1 < len(marks) else None
        count, stop = prints(first)
        last = first if stop else last
        if count == 1:
            if out and out[-1][1] == first - 1:
                out[-1] = (out[-1][0], last)
            else:
                out.append((first, last))
        elif count > 1:
            if last is None or (last - first + 1) * count > _MOST_DOUBLED:
                return None
            out.extend((n, n) for n in range(first, last + 1) for _ in range(count))
        if stop:
            break
    return tuple(out)


_MOST_DOUBLED = 40  # lines of a doubled stretch that are spelled out one by one


def _runs(claims: Claims) -> list[tuple[FileLines, int, int | None]] | None:
    """The stream as runs of known lines of one file, or None when it is not that."""
    out: list[tuple[FileLines, int, int | None]] = []
    for claim in claims:
        if not isinstance(claim, FileLines) or claim.ranges is None or len(claim.keys) != 1:
            return None
        if out and (out[-1][2] is None or claim.keys != out[-1][0].keys):
            return None
        out.extend((claim, start, end) for start, end in claim.ranges)
    return out


def _length(claims: Claims) -> int | None:
    runs = _runs(claims)
    if runs is None:
        return None
    total = 0
    for _, start, end in runs:
        if end is None:
            return None
        total += end - start + 1
    return total


def _append(out: list[FileLines], claim: FileLines, start: int, end: int | None) -> None:
    """Adds a run to `out`, to the last claim when it is numbered alike."""
    ranges: tuple[Range, ...] = ()
    if out and replace(out[-1], ranges=None) == replace(claim, ranges=None):
        ranges = out.pop().ranges or ()
    if ranges and ranges[-1][1] == start - 1:
        start = ranges[-1][0]
        ranges = ranges[:-1]
    out.append(replace(claim, ranges=(*ranges, (start, end))))


def _has_holes(claim: FileLines) -> bool:
    return claim.ranges is not None and len(claim.ranges) > 1


def _vary_claim(claim: Claim, name: str, line_by_line: bool) -> Claim:
    if not isinstance(claim, FileLines):
        return Anything()
    if claim.sep is not None:
        name = f"{claim.shift}{claim.sep}| {name}"
    keys = tuple(_vary_key(key, name) for key in claim.keys)
    return FileLines(keys, claim.ranges if line_by_line else None)


def _vary_key(key: str, name: str) -> str:
    variant = key.partition("\0")[2]
    return key_of(path_of(key), f"{variant} | {name}" if variant else name)
