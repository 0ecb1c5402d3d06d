"""Unified diffs, by their shape alone: which lines of a text are lines of the files as they are behind the change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from readcache.model.events import Piece
from readcache.model.text import DIFF

_HEADER = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def find_hunks(lines: Sequence[str]) -> Iterator[Piece]:
    """The stretches of context and new lines in hunks, each with its number in the new file; of no key, since what the
    names in a diff are relative to is not known. A hunk that was cut short counts as far as it goes."""
    at, path = 0, ""
    while at < len(lines):
        if lines[at].startswith("+++ "):
            path = lines[at][4:].partition("\t")[0].removeprefix("b/")
        header = _HEADER.match(lines[at]) if lines[at].startswith("@@ -") else None
        at += 1
        if header is None:
            continue
        old, number, new = int(header[1] or 1), int(header[2]), int(header[3] or 1)
        start = at
        while at < len(lines) and (old > 0 or new > 0):
            mark = lines[at][:1]
            if mark in ("", " ", "+") and new > 0:  # editors take the blank of an empty line away
                old, new = old - (mark != "+"), new - 1
            elif mark in ("-", "\\"):
                yield from _piece(start, at, number, path)
                number, start, old = number + at - start, at + 1, old - (mark == "-")
            else:
                break
            at += 1
        yield from _piece(start, at, number, path)


def _piece(low: int, high: int, number: int, path: str) -> Iterator[Piece]:
    if high > low and number:
        yield Piece((), low, high - low, number, DIFF + path)
