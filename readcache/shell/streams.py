"""The content of a pipe, as claims, and how filters change it.

A stream is the claims about a program's output, in output order. Filters speak of *positions*: the first line of the
stream has position 1, whatever line of the file it is. Everything here is a function of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from readcache.model.claims import Anything, Claim, FileLines, Literal, Range
from readcache.shell.syntax import Heredoc

_EXPANDS = re.compile(r"[$`\\]")

Claims = tuple[Claim, ...]

WHOLE: tuple[Range, ...] = ((1, None),)
ANYTHING: Claims = (Anything(),)
MOST_COMPARED = 10_000  # ranges of one list with those of another: a hundred in each; the recordings have three


@dataclass(frozen=True, slots=True)
class Stream:
    """What a program finds on its stdin. `body`: the stream is just this text, from the command itself (a heredoc)."""

    claims: Claims = ANYTHING
    body: str | None = None


def literal_stream(text: str, body: str | None = None) -> Stream:
    """A stream of text that is known beforehand."""
    return Stream((Literal(text),) if text else (), body)


def heredoc_stream(heredoc: Heredoc) -> Stream:
    """Its body is the command's own text, unless tabs are taken off it."""
    body, tabs = heredoc.body, heredoc.strip_tabs and re.search(r"(?m)^\t", heredoc.body) is not None
    if not heredoc.quoted and _EXPANDS.search(body):
        return Stream(ANYTHING, None if tabs else body)
    return literal_stream(re.sub(r"(?m)^\t+", "", body)) if tabs else literal_stream(body, body)


def select_lines(claims: Claims, positions: Sequence[Range]) -> Claims:
    """The lines at `positions` (in output order), or unknown lines when the stream is not known lines of one file."""
    file, ranges = _known_lines(claims)
    if file is None or len(positions) * len(ranges) > MOST_COMPARED:
        return unknown(claims)
    out: list[Range] = []
    for first, last in positions:
        before = 0  # lines of the stream before this range of the file
        for start, end in ranges:
            shift = start - before - 1
            low = max(first + shift, start)
            high = end if last is None else last + shift if end is None else min(last + shift, end)
            if high is None or low <= high:
                out.append((low, high))
            before += 0 if end is None else end - start + 1
    return (replace(file, ranges=tuple(out)),) if out else ()


def select_tail(claims: Claims, count: int) -> Claims:
    """The last `count` lines: known when the stream's last line is, for a file that is long enough."""
    file, ranges = _known_lines(claims)
    lengths = [end - start + 1 for start, end in ranges if end is not None]
    if file is None or len(lengths) < len(ranges):
        return unknown(claims)
    total = sum(lengths)
    return select_lines(claims, ((max(1, total - count + 1), total),)) if count else ()


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
    gaps = sep is not None and (gaps or any(file.gaps or len(file.ranges or ()) > 1 for file in files))
    return (FileLines(keys, None, sep, shift, gaps),)


def number_lines(claims: Claims, sep: str, start: int = 1) -> Claims:
    """The stream with line numbers from `start` on in front of its lines.

    The numbers say something about the first file alone, and about that only where its lines follow one another.
    """
    file, ranges = _known_lines(claims[:1])
    if file is None or file.sep is not None or len(ranges) != 1:
        return ANYTHING if claims else ()
    numbered = replace(file, sep=sep, shift=start - ranges[0][0])
    return (numbered, *ANYTHING) if claims[1:] else (numbered,)


def _known_lines(claims: Claims) -> tuple[FileLines | None, tuple[Range, ...]]:
    """The stream as lines of one file and their numbers; (None, ()) when it is not that."""
    match claims:
        case (FileLines(keys=(_,), ranges=tuple() as ranges) as file,):
            return file, ranges
    return None, ()
