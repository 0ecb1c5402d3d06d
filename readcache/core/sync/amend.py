"""Find the rest of a delivery when the harness shows less text than the session answered, or different text.

Used for `Policy.clip` and `Session.settle`. A line counts only if all of it is in the final text. A truncated line is
not shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from readcache.core.judging.marker import find_span
from readcache.core.model.events import Amended, Delivered, MappedSpan, MarkerRecord
from readcache.core.model.policy import Head, HeadTail
from readcache.core.model.reply import Reason
from readcache.core.model.secrets import without_secrets
from readcache.core.model.text import ELISION, bodies, digest, find_separators, split_lines, split_number
from readcache.core.model.unconfirmed import confirmed

# Lines. In longer texts only a head and a tail keep their credit, because aligning the middle would cost too much.
MOST_ALIGNED = 5_000


def amend_answer(event: Delivered, text: str, reason: Reason | None = None) -> Amended:
    """Return the event that records that the host showed `text` for an unconfirmed reply. `reason`: why `text` is the
    whole output, if it is."""
    return replace(answer_shown(event, text) or amend(event, text), reason=reason)


def answer_shown(event: Delivered, text: str) -> Amended | None:
    """Return the event that records that the host showed this unconfirmed reply unchanged, or its whole output. Return
    None if `text` is neither of them."""
    is_framed = text.startswith(event.head) and text.endswith(event.tail) and len(text) >= len(event.head + event.tail)
    head, tail = (event.head, event.tail) if is_framed else ("", "")
    body = text[len(head) : len(text) - len(tail)]
    if body.rstrip() == event.text.rstrip():
        return confirmed(event.call_id)
    if event.output is None or digest(body.rstrip()) != event.output.digest:
        return None
    source_map = _within(event.output.source_map, len(split_lines(body)))
    return Amended(event.call_id, body, source_map, lost=False, head=head, tail=tail)


def _within(source_map: Iterable[MappedSpan], count: int) -> tuple[MappedSpan, ...]:
    """Return the mapped spans, limited to the first `count` lines."""
    inside = (mapped for mapped in source_map if mapped.at < count)
    return tuple(
        mapped if mapped.at + mapped.count <= count else replace(mapped, count=count - mapped.at, eof=False)
        for mapped in inside
    )


def amend(event: Delivered, text: str) -> Amended:
    """Return the event that records that the reader finally sees `text` instead of the text of `event`. The host may
    have numbered its lines. Certain secrets are not kept, even if the host added them."""
    text = without_secrets(text)
    before, after = split_lines(event.text), split_lines(text)
    sep = _hosts_separator(event, before, after)
    moved = align(before, bodies(after, sep))
    if sep is not None:
        moved = _numbered_right(event.source_map, moved, after, sep)
    source_map = tuple(replace(mapped, sep=sep or mapped.sep) for mapped in _move_source_map(event.source_map, moved))
    indexes = find_markers_left(event.markers, after, moved)
    markers = tuple(replace(p, line=at) for p, at in zip(event.markers, indexes, strict=True))
    lost = sep is not None or _loses(event, before, moved)
    return Amended(event.call_id, text, source_map, markers, event.origin, lost)


def _hosts_separator(event: Delivered, before: list[str], after: list[str]) -> str | None:
    """Return the separator between the host's own numbers and the lines, if the host numbered a text without numbers.
    Return None otherwise."""
    if not event.source_map or any(mapped.sep is not None for mapped in event.source_map):
        return None
    known = set(before)
    counts = {sep: sum(line in known for line in bodies(after, sep)) for sep in find_separators(after) if sep}
    best = max(counts, key=counts.__getitem__, default=None)
    return best if best is not None and counts[best] > sum(line in known for line in after) else None


def _numbered_right(
    source_map: Sequence[MappedSpan], moved: dict[int, int], after: list[str], sep: str
) -> dict[int, int]:
    """Return the remaining lines that the host gave the same number as the file does."""
    numbers = {mapped.at + k: mapped.first + k for mapped in source_map if mapped.first for k in range(mapped.count)}
    return {
        before: there
        for before, there in moved.items()
        if before in numbers and (found := split_number(after[there], sep)) is not None and found[0] == numbers[before]
    }


def _loses(event: Delivered, before: list[str], moved: dict[int, int]) -> bool:
    """Return True if a line is gone. Markers do not count, nor does the line that `clip` puts for omitted text."""
    # The harness may have its own words for omitted text. If the line of `clip` is a line of a file, it counts.
    markers = {marker.line for marker in event.markers}
    lost = [k for k in range(len(before)) if k not in moved and k not in markers]
    return any(before[k] != ELISION or any(p.at <= k < p.at + p.count for p in event.source_map) for k in lost)


def kept_of_body(clip: Head | HeadTail, head: str, body: str, tail: str) -> tuple[str, ...]:
    """Return the parts of `body` that a host certainly shows if it puts `head` and `tail` around the body."""
    # A host may truncate before or after it adds its frame. Text that remains in the framed text would also remain in
    # the body alone, because a longer text loses more.
    framed = head + body + tail
    kept = clip.kept(framed)
    if "".join(kept) == framed:
        return (body,)
    spans = [(0, len(kept[0])), (len(framed) - len(kept[-1]), len(framed))][: len(kept)]
    low, high = len(head), len(head) + len(body)
    return tuple(framed[max(start, low) : max(min(end, high), low)] for start, end in spans)


def clip_delivery(event: Delivered, kept: Sequence[str]) -> Delivered:
    """Return the delivery as a harness shows it if it keeps only these parts of the text."""
    if kept == (event.text,):
        return event
    amended = amend(event, f"\n{ELISION}\n".join(kept))
    return replace(event, text=amended.text, source_map=amended.source_map, markers=amended.markers)


def align(before: list[str], after: list[str]) -> dict[int, int]:
    """Return {line index before: line index after} for lines that are equal and in the same order."""
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
    low = b.index(a[0]) if a[0] in b else 0  # after the harness's own words at the beginning
    high = len(b) - b[::-1].index(a[-1]) if a[-1] in b[low:] else len(b)
    inner_head, inner_tail = _common_ends(a, b[low:high])
    moved |= {head + k: head + low + k for k in range(inner_head)}
    moved |= {head + len(a) - 1 - k: head + high - 1 - k for k in range(inner_tail)}
    return moved


def _common_ends(before: list[str], after: list[str]) -> tuple[int, int]:
    """Return the number of equal lines at the beginning, and the number of other equal lines at the end."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return head, tail


def _move_source_map(source_map: Sequence[MappedSpan], moved: dict[int, int]) -> tuple[MappedSpan, ...]:
    out: list[MappedSpan] = []
    for mapped in source_map:
        end = mapped.at + mapped.count
        at = mapped.at
        while at < end:
            if at not in moved:
                at += 1
                continue
            stop = at + 1
            while stop < end and moved.get(stop) == moved[at] + stop - at:
                stop += 1
            first = mapped.first and mapped.first + at - mapped.at
            out.append(replace(mapped, at=moved[at], count=stop - at, first=first, eof=mapped.eof and stop == end))
            at = stop
    return tuple(out)


def find_markers_left(markers: Sequence[MarkerRecord], after: list[str], moved: dict[int, int]) -> list[int]:
    """Return for each marker the index of the line in `after` that contains it, or its beginning if the host truncated
    it. The index is -1 if no line does. `moved`: the result of `align`.
    """
    # The truncated line `[UNCHANGED 7f3a: app.py li` may have been `… lines 1-9, …` or `… lines 20-30, …`. It counts as
    # the first of these markers, because all text after the truncation is gone.
    taken = set(moved.values())
    known = sorted(moved)
    indexes = []
    for marker in markers:
        at = moved.get(marker.line, -1)
        if at < 0:
            between = bisect_left(known, marker.line)
            low = moved[known[between - 1]] + 1 if between else 0
            high = moved[known[between]] if marker.line >= 0 and between < len(known) else len(after)
            lines = (*range(low, high), *range(len(after)))  # the expected lines first
            at = next((k for k in lines if k not in taken and find_span(after[k], marker.wording)), -1)
            taken.add(at)
        indexes.append(at)
    return indexes
