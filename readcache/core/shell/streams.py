"""The content of a pipe, as claims, and the changes that filters make.

A stream is the claims about a program's output, in output order. Filters use *positions*: the first line of the stream
has position 1, even if it is another line of its file. Everything here is a function of its arguments.
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
    """The content of a program's stdin.

    `body`: the text in the command itself (a heredoc) that is all of the stream, as written. None if there is none.
    """

    claims: Claims = ANYTHING
    body: str | None = None


def literal_stream(text: str, body: str | None = None) -> Stream:
    """Return a stream of text that is known beforehand."""
    return Stream((Literal(text),) if text else (), body)


def heredoc_stream(heredoc: Heredoc) -> Stream:
    """Return the stream of a heredoc. Its `body` is the command's own text, or None if bash strips tabs from it.

    Its claims are ANYTHING if bash expands the text.
    """
    body, tabs = heredoc.body, heredoc.strip_tabs and re.search(r"(?m)^\t", heredoc.body) is not None
    if not heredoc.quoted and _EXPANDS.search(body):
        return Stream(ANYTHING, None if tabs else body)
    return literal_stream(re.sub(r"(?m)^\t+", "", body)) if tabs else literal_stream(body, body)


def select_lines(claims: Claims, first: int, last: int | None) -> Claims:
    """Return the lines at positions `first` to `last`. `last` is None for the end of the stream.

    Return unknown lines if the stream is not known lines of one file.
    """
    match claims:
        case (FileLines(keys=(_,), lines=(start, end)) as file,):
            low = start + first - 1
            stops = [stop for stop in (end, last and start + last - 1) if stop is not None]
            high = min(stops, default=None)
            return (replace(file, lines=(low, high)),) if high is None or low <= high else ()
    return unknown(claims)


def select_tail(claims: Claims, count: int) -> Claims:
    """Return the last `count` lines. Their numbers are right only if the file has the last line claimed.

    Return unknown lines if the last line of the stream is not known.
    """
    match claims:
        case (FileLines(keys=(_,), lines=(start, int(end)), sep=None) as file,) if count:
            first = max(start, end - count + 1)
            return (replace(file, lines=(first, end), if_long=file.if_long or first > start),)
    return unknown(claims) if count else ()


def unknown(claims: Claims, *, gaps: bool = False) -> Claims:
    """Return claims for some unknown lines of the stream. `gaps`: lines between numbered lines may be missing.

    Return ANYTHING if the stream contains other text than lines of files, or numbers that do not say which file they
    belong to.
    """
    if not claims:
        return ()
    files = [claim for claim in claims if isinstance(claim, FileLines)]
    keys = tuple(dict.fromkeys(key for file in files for key in file.keys))
    numberings = {(file.sep, file.shift if file.sep else 0) for file in files}
    if len(files) < len(claims) or len(numberings) > 1 or (len(files) > 1 and numberings != {(None, 0)}):
        return ANYTHING
    sep, shift = numberings.pop()
    gaps = sep is not None and (gaps or any(file.gaps for file in files))
    return (FileLines(keys, None, sep, shift, gaps),)


def number_lines(claims: Claims, sep: str, start: int = 1) -> Claims:
    """Return the stream with line numbers from `start` on before its lines, and with `sep` after each number.

    Return ANYTHING if the lines are not known lines of one file: the numbers are then not numbers of lines in a file.
    """
    match claims:
        case (FileLines(keys=(_,), lines=(first, _), sep=None, if_long=False) as file,):
            return (replace(file, sep=sep, shift=start - first),)
    return ANYTHING if claims else ()
