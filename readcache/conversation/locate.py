"""Finds a delivery inside a longer text: exactly, with other markers, or truncated.

Lines count whole only, and whatever stands before and after them is no matter.
"""

from __future__ import annotations

from readcache.conversation.settle import align, find_markers_left, settle
from readcache.judging.marker import find_markers
from readcache.model.events import Delivered, Origin, Settled
from readcache.model.text import split_lines

Stretch = tuple[int, int]  # characters start to end - 1 of a text
_ANY_MARKER = "\0"


def body(text: str) -> str:
    """The text without its final newline: whoever shows it may or may not keep that."""
    return text[:-1] if text.endswith("\n") else text


def locate(event: Delivered, content: str) -> Stretch | None:
    """Where all of a delivery stands; None when it does not."""
    if event.origin is Origin.COMMAND:
        return _locate_pieces(event, content)
    return _locate_text(event.text, content)


def locate_unmended(event: Delivered, content: str, tag: str) -> Stretch | None:
    """Where a delivery stands but for its markers, in whose places are others of this session: those from before they
    were mended."""
    theirs = set(find_markers(content, tag)) if event.pointers else ()
    if not theirs:
        return None
    ours = {pointer.line for pointer in event.pointers}
    masked = [_ANY_MARKER if k in ours else line for k, line in enumerate(split_lines(event.text))]
    lines = content.split("\n")
    hidden = "\n".join(_ANY_MARKER if line in theirs else line for line in lines)
    found = _locate_text("\n".join(masked) + "\n", hidden)
    if found is None:
        return None
    low = hidden.count("\n", 0, found[0])
    return _stretch_of(lines, low, low + len(masked))


def cut_out(event: Delivered, content: str) -> tuple[Settled, Stretch]:
    """What is left of a delivery, and where it stands: from the first line that is left to the last."""
    before, after = split_lines(event.text), content.split("\n")
    moved = align(before, after)
    places = [*moved.values(), *find_markers_left(event.pointers, after, moved)]
    lines = [place for place in places if place >= 0]
    if not lines:
        return settle(event, ""), (0, 0)
    start, end = _stretch_of(after, min(lines), max(lines) + 1)
    return settle(event, content[start:end] + "\n"), (start, end)


def longest_run(event: Delivered, content: str) -> int:
    """How many characters of a delivery stand in one piece."""
    before, after = split_lines(event.text), content.split("\n")
    longest = run = 0
    last = -2
    for k, place in sorted(align(before, after).items()):
        run = (run if place == last + 1 else 0) + len(before[k]) + 1
        longest, last = max(longest, run), place
    return longest


def _locate_text(text: str, content: str) -> Stretch | None:
    wanted = body(text)
    if content in (text, wanted):
        return 0, len(wanted)
    at = f"\n{content}\n".find(f"\n{wanted}\n")
    return None if at < 0 else (at, at + len(wanted))


def _locate_pieces(event: Delivered, content: str) -> Stretch | None:
    """The agent's own texts stand one after the other in its call, with other words between them."""
    lines, padded = split_lines(event.text), f"\n{content}\n"
    start, at = None, 0
    for piece in event.pieces:
        wanted = "\n".join(lines[piece.at : piece.at + piece.count])
        found = padded.find(f"\n{wanted}\n", at)
        if found < 0:
            return None
        start = found if start is None else start
        at = found + len(wanted) + 1
    return None if start is None else (start, at - 1)


def _stretch_of(lines: list[str], low: int, high: int) -> Stretch:
    start = sum(map(len, lines[:low])) + low
    return start, start + sum(map(len, lines[low:high])) + high - low - 1
