"""What searches print, by its shape alone: `src/app.py:12:line`, `src/app.py-13-line of context`, `12:line`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from readcache.model.events import Piece
from readcache.model.text import GREP

_HIT = re.compile(r"(?:([^\s:][^:]*):)?(\d{1,7}):")


def find_hits(lines: Sequence[str]) -> Iterator[Piece]:
    """The stretches of two lines and more whose numbers follow one another behind the same path, or behind none; of no
    key, since what the path is relative to is not known. Only around a hit: a line of context alone looks like any."""
    done = 0
    for at, line in enumerate(lines):
        found = _HIT.match(line) if at >= done else None
        if found is None:
            continue
        path, number = found[1] or "", int(found[2])
        low = at
        while low > done and lines[low - 1].startswith(f"{path and path + '-'}{number - (at - low) - 1}-"):
            low -= 1
        done = at + 1
        while done < len(lines) and lines[done].startswith(_beginnings(path, number + done - at)):
            done += 1
        first = number - (at - low)
        if done - low > 1 and first > 0:
            yield Piece((), low, done - low, first, path + GREP)


def _beginnings(path: str, number: int) -> tuple[str, str]:
    """Of the line of this number, as a hit and as context."""
    return (f"{path}:{number}:", f"{path}-{number}-") if path else (f"{number}:", f"{number}-")
