"""Finds the rest of a delivery when the harness shows less text than the session answered, or different text.

Used for `Policy.clip` and `Session.settle`. A line counts only if it stands whole in the final text; a line cut in half
is not shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from readcache.judging.marker import find_span
from readcache.model.events import Delivered, Piece, Pointer, Settled
from readcache.model.policy import Head, HeadTail
from readcache.model.reply import Reason
from readcache.model.secrets import without_secrets
from readcache.model.text import ELISION, bodies, digest, find_separators, split_lines, split_number
from readcache.model.withheld import confirmed

# Lines. Beyond, only a head and a tail keep their credit: aligning the middle would cost too much.
MOST_ALIGNED = 5_000


def settle_answer(event: Delivered, text: str, reason: Reason | None = None) -> Settled:
    """Return the event that says that the host showed `text` for an unconfirmed reply. `reason`: why that is the whole
    output, if it is."""
    return replace(answer_shown(event, text) or amend(event, text), reason=reason)


def answer_shown(event: Delivered, text: str) -> Settled | None:
    """Return the event that says that the host showed this unconfirmed reply as it was answered, or its whole output.
    Return None if `text` is neither of them."""
    is_framed = text.startswith(event.head) and text.endswith(event.tail) and len(text) >= len(event.head + event.tail)
    head, tail = (event.head, event.tail) if is_framed else ("", "")
    body = text[len(head) : len(text) - len(tail)]
    if body.rstrip() == event.text.rstrip():
        return confirmed(event.call_id)
    if event.output is None or digest(body.rstrip()) != event.output.digest:
        return None
    pieces = _within(event.output.pieces, len(split_lines(body)))
    return Settled(event.call_id, body, pieces, lost=False, head=head, tail=tail)


def _within(pieces: Iterable[Piece], count: int) -> tuple[Piece, ...]:
    """Return what is left of the pieces in the first `count` lines."""
    inside = (piece for piece in pieces if piece.at < count)
    return tuple(
        piece if piece.at + piece.count <= count else replace(piece, count=count - piece.at, eof=False)
        for piece in inside
    )


def amend(event: Delivered, text: str) -> Settled:
    """The event that says `text` is what the reader finally sees of `event`; a host may have numbered its lines. What
    is certainly a secret is not kept, whoever put it there."""
    text = without_secrets(text)
    before, after = split_lines(event.text), split_lines(text)
    sep = _hosts_separator(event, before, after)
    moved = align(before, bodies(after, sep))
    if sep is not None:
        moved = _numbered_right(event.pieces, moved, after, sep)
    pieces = tuple(replace(piece, sep=sep or piece.sep) for piece in _move_pieces(event.pieces, moved))
    places = find_markers_left(event.pointers, after, moved)
    pointers = tuple(replace(p, line=at) for p, at in zip(event.pointers, places, strict=True))
    lost = sep is not None or _loses(event, before, moved)
    return Settled(event.call_id, text, pieces, pointers, event.origin, lost)


def _hosts_separator(event: Delivered, before: list[str], after: list[str]) -> str | None:
    """What stands between the host's own numbers and the lines, where it has numbered a text that had none."""
    if not event.pieces or any(piece.sep is not None for piece in event.pieces):
        return None
    known = set(before)
    held = {sep: sum(line in known for line in bodies(after, sep)) for sep in find_separators(after) if sep}
    best = max(held, key=held.__getitem__, default=None)
    return best if best is not None and held[best] > sum(line in known for line in after) else None


def _numbered_right(pieces: Sequence[Piece], moved: dict[int, int], after: list[str], sep: str) -> dict[int, int]:
    """The remaining lines whose number is that of the file's line."""
    numbers = {piece.at + k: piece.first + k for piece in pieces if piece.first for k in range(piece.count)}
    return {
        before: there
        for before, there in moved.items()
        if before in numbers and (found := split_number(after[there], sep)) is not None and found[0] == numbers[before]
    }


def _loses(event: Delivered, before: list[str], moved: dict[int, int]) -> bool:
    """Is a line gone? Markers do not count, nor the line that stands for what `clip` took away, where the harness has
    words of its own. But a file may have such a line, too."""
    markers = {pointer.line for pointer in event.pointers}
    lost = [k for k in range(len(before)) if k not in moved and k not in markers]
    return any(before[k] != ELISION or any(p.at <= k < p.at + p.count for p in event.pieces) for k in lost)


def kept_of_body(clip: Head | HeadTail, head: str, body: str, tail: str) -> tuple[str, ...]:
    """The stretches of `body` that are certain to be shown by a host that puts `head` and `tail` around it.

    Whether a host cuts before or after it adds its frame is not known. Whatever survives of the framed text would
    survive of the body alone too, because a longer text loses more.
    """
    framed = head + body + tail
    kept = clip.kept(framed)
    if "".join(kept) == framed:
        return (body,)
    spans = [(0, len(kept[0])), (len(framed) - len(kept[-1]), len(framed))][: len(kept)]
    low, high = len(head), len(head) + len(body)
    return tuple(framed[max(start, low) : max(min(end, high), low)] for start, end in spans)


def clip_delivery(event: Delivered, kept: Sequence[str]) -> Delivered:
    """The delivery as a harness shows it that keeps only these stretches of its text."""
    if kept == (event.text,):
        return event
    settled = amend(event, f"\n{ELISION}\n".join(kept))
    return replace(event, text=settled.text, pieces=settled.pieces, pointers=settled.pointers)


def align(before: list[str], after: list[str]) -> dict[int, int]:
    """Line index before -> line index after, for lines that are equal and in the same order."""
    head, tail = _common_ends(before, after)
    moved = {k: k for k in range(head)}
    moved |= {len(before) - 1 - k: len(after) - 1 - k for k in range(tail)}
    a, b = before[head : len(before) - tail], after[head : len(after) - tail]
    if not a or not b:
        return moved
    if len(a) + len(b) <= MOST_ALIGNED:
        import difflib

        for start, there, count in difflib.SequenceMatcher(None, a, b).get_matching_blocks():
            moved |= {head + start + k: head + there + k for k in range(count)}
        return moved
    low = b.index(a[0]) if a[0] in b else 0  # behind the harness's own words in front
    high = len(b) - b[::-1].index(a[-1]) if a[-1] in b[low:] else len(b)
    inner_head, inner_tail = _common_ends(a, b[low:high])
    moved |= {head + k: head + low + k for k in range(inner_head)}
    moved |= {head + len(a) - 1 - k: head + high - 1 - k for k in range(inner_tail)}
    return moved


def _common_ends(before: list[str], after: list[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning, and how many of the others at the end."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return head, tail


def _move_pieces(pieces: Sequence[Piece], moved: dict[int, int]) -> tuple[Piece, ...]:
    out: list[Piece] = []
    for piece in pieces:
        end = piece.at + piece.count
        at = piece.at
        while at < end:
            if at not in moved:
                at += 1
                continue
            stop = at + 1
            while stop < end and moved.get(stop) == moved[at] + stop - at:
                stop += 1
            first = piece.first and piece.first + at - piece.at
            out.append(replace(piece, at=moved[at], count=stop - at, first=first, eof=piece.eof and stop == end))
            at = stop
    return tuple(out)


def find_markers_left(pointers: Sequence[Pointer], after: list[str], moved: dict[int, int]) -> list[int]:
    """The line of `after` in which each marker, or the beginning that a cut left of it, stands; -1: none.

    `moved` is what `align` found. The cut line `[UNCHANGED 7f3a: app.py li` may have been `… lines 1-9, …` or `… lines
    20-30, …`: it is taken for the first of these markers, since what followed a cut is gone.
    """
    taken = set(moved.values())
    known = sorted(moved)
    places = []
    for pointer in pointers:
        at = moved.get(pointer.line, -1)
        if at < 0:
            between = bisect_left(known, pointer.line)
            low = moved[known[between - 1]] + 1 if between else 0
            high = moved[known[between]] if pointer.line >= 0 and between < len(known) else len(after)
            lines = (*range(low, high), *range(len(after)))  # where it should stand first
            at = next((k for k in lines if k not in taken and find_span(after[k], pointer.wording)), -1)
            taken.add(at)
        places.append(at)
    return places
