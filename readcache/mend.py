"""Markers whose source has left the conversation: pointed at where the lines stand now, or retired."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from readcache import marker
from readcache.events import Delivered, Pointer, Settled
from readcache.text import split_lines
from readcache.view import View


def dangling(view: View, event: Delivered, staying: Container[str]) -> list[Pointer]:
    """The pointers of a reply that name a call which does not stay, or which lost lines since the marker was made."""
    return [
        pointer
        for pointer in event.pointers
        if not all(source in staying and view.cut.get(source, 0) < event.call for source in pointer.sources)
    ]


def mend(
    view: View, event: Delivered, lost: Sequence[Pointer], restored: Delivered | None, session_tag: str
) -> Settled:
    """The reply with the markers `lost` pointed at the restored section, where that holds the very lines, or retired.
    `view` is as it was while the sources were there."""
    lines = event.text.split("\n")
    pointers = [pointer for pointer in event.pointers if pointer not in lost]
    for pointer in lost:
        if pointer.line < 0:  # the harness cut the marker away: nothing to replace
            continue
        if restored is not None and _stands_in(view, pointer, restored):
            source = marker.Source(restored.label, restored=True)
            text = marker.write_marker(session_tag, _what(pointer), [source])
            pointers.append(replace(pointer, sources=(restored.call_id,), marker=text))
        else:
            text = marker.write_gone(session_tag, _what(pointer))
            pointers.append(replace(pointer, sources=(), marker=text))
        lines[pointer.line] = text
    return Settled(event.call_id, "\n".join(lines), event.pieces, tuple(pointers))


def _what(pointer: Pointer) -> str:
    if pointer.path is not None:
        return marker.name_lines(pointer.path, [(pointer.start, pointer.end)])
    return f"lines {pointer.start}-{pointer.end} of this output"


def _stands_in(view: View, pointer: Pointer, restored: Delivered) -> bool:
    """Does the restored section hold the very lines that the marker stands for?"""
    if pointer.path is None or pointer.numbered:  # the section shows no numbers
        return False
    meant = _meant_lines(view, pointer)
    if meant is None:
        return False
    section = split_lines(restored.text)
    for piece in restored.pieces:
        at = piece.at + pointer.start - piece.first
        inside = piece.first <= pointer.start and pointer.end < piece.first + piece.count
        if piece.keys == (pointer.path,) and inside:
            return section[at : at + len(meant)] == meant
    return False


def _meant_lines(view: View, pointer: Pointer) -> Sequence[str] | None:
    """The omitted lines, from the sources that the marker names."""
    assert pointer.path is not None
    out: list[str] = []
    for start, end, reference in view.key(pointer.path).numbered.overlaps(pointer.start, pointer.end):
        first = reference.piece.first
        if reference.delivery.event.call_id not in pointer.sources or start != pointer.start + len(out):
            return None
        out += view.bodies(reference)[start - first : end - first + 1]
    return out if len(out) == pointer.end - pointer.start + 1 else None
