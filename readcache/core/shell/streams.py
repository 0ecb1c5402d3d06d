"""The content of a pipe, as claims, and how filters change it.

A stream is the claims about a program's output, in output order. Filters speak of *positions*: the first line of the
stream has position 1, whatever line of the file it is. Everything here is a function of its arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from readcache.core.model.claims import Anything, Claim, FileLines, Literal
from readcache.core.shell.syntax import Heredoc

_EXPANDS = re.compile(r"[$`\\]")

Claims = tuple[Claim, ...]

ANYTHING: Claims = (Anything(),)


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


def select_lines(claims: Claims, first: int, last: int | None) -> Claims:
    """The lines at positions `first` to `last`, or unknown lines when the stream is not known lines of one file."""
    match claims:
        case (FileLines(keys=(_,), lines=(start, end)) as file,):
            low = start + first - 1
            stops = [stop for stop in (end, last and start + last - 1) if stop is not None]
            high = min(stops, default=None)
            return (replace(file, lines=(low, high)),) if high is None or low <= high else ()
    return unknown(claims)


def select_tail(claims: Claims, count: int) -> Claims:
    """The last `count` lines: known when the stream's last line is, for a file that is long enough."""
    match claims:
        case (FileLines(keys=(_,), lines=(start, int(end))),):
            total = end - start + 1
            return select_lines(claims, max(1, total - count + 1), total) if count else ()
    return unknown(claims)


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
    gaps = sep is not None and (gaps or any(file.gaps for file in files))
    return (FileLines(keys, None, sep, shift, gaps),)


def number_lines(claims: Claims, sep: str, start: int = 1) -> Claims:
    """The stream with line numbers from `start` on in front of its lines.

    The numbers say something about the first file alone.
    """
    match claims[:1]:
        case (FileLines(keys=(_,), lines=(first, _), sep=None) as file,):
            numbered = replace(file, sep=sep, shift=start - first)
            return (numbered, *ANYTHING) if claims[1:] else (numbered,)
    return ANYTHING if claims else ()
