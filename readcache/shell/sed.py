"""Which lines a sed script prints: line numbers with `p` are worked out, other selections are some of the lines."""

from __future__ import annotations

import itertools
import re

from readcache.model.claims import Range
from readcache.shell.streams import ANYTHING, Claims, select_lines, unknown

# Unambiguous, because scripts that almost match would backtrack for ever.
_PRINT = re.compile(r"(?<!\d)(?P<first>[1-9]\d*)(?:,(?:\+(?P<more>\d+)|(?P<last>\d+|\$)))?\s*(?:p|\{p;?\})(?=[\s;]|$)")
_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:\\.|\[[^\]]*\]|[^/\\\[])*/[IM]*)"
_SELECTION = re.compile(rf"(?:[\s;}}]|(?:{_ADDRESS}(?:\s*,\s*(?:[+~]\d+|{_ADDRESS}))?\s*)?(?:!\s*)?[pdq{{])*")


def sed_output(claims: Claims, script: str, *, quiet: bool) -> Claims:
    """The output of `sed script` (with -n if `quiet`) for a stream.

    `sed -n '1,5p;9p'` prints lines 1 to 5 and 9. `/x/p`, `5q`, `2d` print lines of the stream, which is not worked out.
    """
    if _SELECTION.fullmatch(script) is None:
        return ANYTHING
    printed = _printed_ranges(script) if quiet else None
    return unknown(claims, gaps=True) if printed is None else select_lines(claims, printed)


def _printed_ranges(script: str) -> tuple[Range, ...] | None:
    """The ranges in the order in which they are printed; None when the script has other commands, or ranges overlap."""
    ranges: list[tuple[int, float]] = []
    for found in _PRINT.finditer(script):
        first, last = int(found["first"]), found["last"] or found["first"]
        if found["more"]:
            last = str(first + int(found["more"]))
        ranges.append((first, float("inf") if last == "$" else max(first, int(last))))  # sed's rule for an early end
    ranges.sort()
    overlap = any(start < end for (_, end), (start, _) in itertools.pairwise(ranges))
    if overlap or _PRINT.sub("", script).strip(" \t\n;"):
        return None
    return tuple((first, None if last == float("inf") else int(last)) for first, last in ranges)
