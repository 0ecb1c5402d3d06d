"""The lines that a sed script prints: a range with `p` is computed, other selections are some of the lines."""

from __future__ import annotations

import re

from readcache.core.shell.streams import ANYTHING, Claims, select_lines, unknown

# Unambiguous, because an ambiguous pattern would backtrack almost endlessly on scripts that almost match.
_PRINT = re.compile(r"\s*(?P<first>[1-9]\d*)(?:,(?P<last>\d+|\$))?\s*(?:p|\{p;?\})[\s;]*")
_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:\\.|\[[^\]]*\]|[^/\\\[])*/[IM]*)"
_SELECTION = re.compile(rf"(?:[\s;}}]|(?:{_ADDRESS}(?:\s*,\s*(?:[+~]\d+|{_ADDRESS}))?\s*)?(?:!\s*)?[pdq{{])*")


def sed_output(claims: Claims, script: str, *, quiet: bool) -> Claims:
    """Return the claims about the output of `sed script` (with -n if `quiet`) for a stream.

    `sed -n '3,5p'` prints lines 3 to 5. `/x/p`, `5q`, `2d` and `1,5p;9p` print some lines of the stream, but their
    numbers are not computed. Return ANYTHING for other scripts.
    """
    if _SELECTION.fullmatch(script) is None:
        return ANYTHING
    found = _PRINT.fullmatch(script) if quiet else None
    if found is None:
        return unknown(claims, gaps=True)
    first, last = int(found["first"]), found["last"]
    end = None if last == "$" else max(first, int(last or 0))  # a range that ends too early prints its first line
    return select_lines(claims, first, end)
