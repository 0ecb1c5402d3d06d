"""Unified diffs, recognised by their form only: find the lines of a text that are lines of the changed files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from readcache.core.model.events import MappedSpan
from readcache.core.model.text import DIFF

_HEADER = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def find_changes(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield (low, high) of each hunk, including its header. A truncated hunk ends at the last line that fits."""
    at = 0
    while at < len(lines):
        header = _HEADER.match(lines[at]) if lines[at].startswith("@@ -") else None
        low, at = at, at + 1
        if header is None:
            continue
        old, new = int(header[1] or 1), int(header[3] or 1)
        while at < len(lines) and (old > 0 or new > 0):
            mark = lines[at][:1]
            if mark in ("", " ", "+") and new > 0:  # editors remove the blank of an empty context line
                old, new = old - (mark != "+"), new - 1
            elif mark in ("-", "\\"):
                old -= mark == "-"
            else:
                break
            at += 1
        yield low, at


def find_hunks(lines: Sequence[str]) -> Iterator[MappedSpan]:
    """Yield the runs of context and new lines in hunks, each with its number in the new file.

    They have no key, because the directory of the names in a diff is not known.
    """
    done, path = 0, ""
    for low, high in find_changes(lines):
        path = next((_path(line) for line in reversed(lines[done:low]) if line.startswith("+++ ")), path)
        header = _HEADER.match(lines[low])
        start, number, done = low + 1, int(header[2]) if header else 0, high
        for at in range(low + 1, high):
            if lines[at][:1] in ("-", "\\"):
                yield from _mapped(start, at, number, path)
                start, number = at + 1, number + at - start
        yield from _mapped(start, high, number, path)


def _path(line: str) -> str:
    return line[4:].partition("\t")[0].removeprefix("b/")


def _mapped(low: int, high: int, number: int, path: str) -> Iterator[MappedSpan]:
    if high > low and number:
        yield MappedSpan((), low, high - low, number, DIFF + path)
