"""Lines with numbers in front in whatever printed them, by their shape alone: what searches print
(`src/app.py:12:line`, `src/app.py-13-line of context`, `12:line`), and editors (`12` and a tab, `12→`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from readcache.model.events import Piece
from readcache.model.text import GREP

_AFTER_NUMBER = re.compile(r"\d[\t→:]")
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})([\t→])")
_HIT = re.compile(r"(?:([^\s:][^:]*):)?(\d{1,7}):")


def find_numbers(lines: Sequence[str]) -> Iterator[Piece]:
    """Both kinds of stretches. Most texts have none, and a search of all of them at once says so soon."""
    if _AFTER_NUMBER.search("\n".join(lines)):
        yield from _find_hits(lines)
        yield from _find_numbered(lines)


def _find_hits(lines: Sequence[str]) -> Iterator[Piece]:
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


def _find_numbered(lines: Sequence[str]) -> Iterator[Piece]:
    """The stretches of two lines and more whose numbers follow one another before a tab or an arrow; of no key."""
    numbers = [_NUMBERED.match(line) for line in lines]
    low = 0
    for at in range(1, len(lines) + 1):
        before, after = numbers[at - 1], numbers[at] if at < len(lines) else None
        if before and after and before[2] == after[2] and int(before[1]) + 1 == int(after[1]):
            continue
        first = numbers[low]
        if at - low > 1 and first and int(first[1]):
            yield Piece((), low, at - low, int(first[1]), first[2])
        low = at


def _beginnings(path: str, number: int) -> tuple[str, str]:
    """Of the line of this number, as a hit and as context."""
    return (f"{path}:{number}:", f"{path}-{number}-") if path else (f"{number}:", f"{number}-")
