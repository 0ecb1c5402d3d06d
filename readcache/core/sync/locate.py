"""Find a delivery inside a longer text: exactly, with other markers, or truncated.

Only whole lines count. Text before and after them does not matter.
"""

from __future__ import annotations

from itertools import groupby

from readcache.core.judging.marker import find_possible, find_span, may_contain, name_in
from readcache.core.model.events import Amended, Delivered, Origin
from readcache.core.model.text import split_lines
from readcache.core.sync.amend import align, amend, find_markers_left

CharSpan = tuple[int, int]  # characters start to end - 1 of a text
TAKEN = "\0"  # replaces characters that belong to another delivery
_ANY_MARKER = "\1"


def body(text: str) -> str:
    """Return the text without its final newline, which the host may or may not keep."""
    return text[:-1] if text.endswith("\n") else text


def locate(event: Delivered, content: str) -> CharSpan | None:
    """Return the character span of a whole delivery, or None if the content does not contain all of it."""
    if event.origin is Origin.COMMAND:
        return _locate_source_map(event, content)
    return _locate_text(event.text, content)


def locate_stale(event: Delivered, content: str, tag: str) -> CharSpan | None:
    """Return the character span of a delivery with other markers of this session instead of its own: markers from
    before a repair. Return None if there is none."""
    lines = content.split("\n")
    masked = [_masked(line, tag) for line in lines] if event.markers and may_contain(content, tag) else lines
    if masked == lines:
        return None
    ours = {marker.line for marker in event.markers}
    wanted = [_masked(line, tag) if k in ours else line for k, line in enumerate(split_lines(event.text))]
    hidden = "\n".join(masked)
    found = _locate_text("\n".join(wanted) + "\n", hidden)
    if found is None:
        return None
    low = hidden.count("\n", 0, found[0])
    return _char_span_of(lines, low, low + len(wanted))


def _masked(line: str, tag: str) -> str:
    """Return the line with its first possible marker masked, except for the marker's name."""
    # The marker is taken to end at the first bracket, because later text may be the harness's own.
    spans = list(find_possible(line, tag))
    if not spans:
        return line
    start, end = min(spans)
    return line[:start] + _ANY_MARKER + name_in(line[start:end]) + line[end:]


def extract_rest(event: Delivered, content: str, tag: str) -> tuple[Amended, CharSpan]:
    """Return the rest of a delivery, and its character span, from the first remaining line to the last. The span
    contains no text of another delivery."""
    start, end = remaining_span(event, content, tag)
    return amend(event, content[start:end] + "\n" if end > start else ""), (start, end)


def remaining_span(event: Delivered | Amended, content: str, tag: str) -> CharSpan:
    """Return the character span of a delivery's rest, in the free part of the content that contains most of it."""
    at, part = max(_segments(event, content, tag), key=lambda segment: _alignment(event, segment[1])[1])
    start, end = _alignment(event, part)[0]
    return at + start, at + end


def _segments(event: Delivered | Amended, content: str, tag: str) -> list[tuple[int, str]]:
    """Return (start, text) of each run of lines without text and markers that belong to other deliveries."""
    if TAKEN not in content and not may_contain(content, tag):
        return [(0, content)]
    out: list[tuple[int, str]] = []
    at = 0
    for is_taken, group in groupby(content.split("\n"), lambda line: TAKEN in line or _is_foreign(event, line, tag)):
        part = "\n".join(group)
        out += [] if is_taken else [(at, part)]
        at += len(part) + 1
    return out or [(0, "")]


def _is_foreign(event: Delivered | Amended, line: str, tag: str) -> bool:
    return any(find_possible(line, tag)) and not any(find_span(line, marker.wording) for marker in event.markers)


def _alignment(event: Delivered | Amended, part: str) -> tuple[CharSpan, int]:
    """Return the character span of a delivery's lines in a text, and how many of its characters are there."""
    before, after = split_lines(event.text), part.split("\n")
    moved = align(before, after)
    found = [*moved.values(), *find_markers_left(event.markers, after, moved)]
    lines = [line for line in found if line >= 0]
    if not lines:
        return (0, 0), 0
    return _char_span_of(after, min(lines), max(lines) + 1), sum(len(after[line]) + 1 for line in lines)


def chars_left(event: Delivered, content: str, tag: str) -> int:
    """Return how many characters of a delivery are left in one free part of a text."""
    return max(_alignment(event, part)[1] for _, part in _segments(event, content, tag))


def longest_run(event: Delivered, content: str) -> int:
    """Return how many characters of a delivery are left in consecutive lines."""
    before, after = split_lines(event.text), content.split("\n")
    longest = run = 0
    last = -2
    for k, line in sorted(align(before, after).items()):
        run = (run if line == last + 1 else 0) + len(before[k]) + 1
        longest, last = max(longest, run), line
    return longest


def _locate_text(text: str, content: str) -> CharSpan | None:
    wanted = body(text)
    if content in (text, wanted):
        return 0, len(wanted)
    at = f"\n{content}\n".find(f"\n{wanted}\n")
    return None if at < 0 else (at, at + len(wanted))


def _locate_source_map(event: Delivered, content: str) -> CharSpan | None:
    """Return the character span of the agent's own texts in its call, or None if one is missing."""
    # The texts occur one after the other, with other words between them.
    lines, padded = split_lines(event.text), f"\n{content}\n"
    start, at = None, 0
    for mapped in event.source_map:
        wanted = "\n".join(lines[mapped.at : mapped.at + mapped.count])
        found = padded.find(f"\n{wanted}\n", at)
        if found < 0:
            return None
        start = found if start is None else start
        at = found + len(wanted) + 1
    return None if start is None else (start, at - 1)


def _char_span_of(lines: list[str], low: int, high: int) -> CharSpan:
    start = sum(map(len, lines[:low])) + low
    return start, start + sum(map(len, lines[low:high])) + high - low - 1
