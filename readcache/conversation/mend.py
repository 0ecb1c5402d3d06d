"""Markers whose source has left the conversation: pointed at where the lines stand now, or retired."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace

from readcache.judging import marker
from readcache.model.events import Delivered, Event, Pointer, Settled
from readcache.model.text import split_lines
from readcache.model.view import View


def dangling(view: View, event: Delivered, staying: Container[str]) -> list[Pointer]:
    """The pointers of a reply that name a call which does not stay, or which lost lines since the marker was made."""
    return [
        pointer
        for pointer in event.pointers
        if not all(source in staying and view.lost_at.get(source, 0) < event.when.call for source in pointer.sources)
    ]


def mend(view: View, event: Delivered, lost: Sequence[Pointer], restored: Delivered | None) -> Settled:
    """The reply with the markers `lost` pointed at the restored section, where that holds the very lines, or retired.
    `view` is as it was while the sources were there."""
    lines = event.text.split("\n")
    pointers = [pointer for pointer in event.pointers if pointer not in lost]
    for pointer in lost:
        if pointer.line < 0:  # the harness cut the marker away: nothing to replace
            continue
        if restored is not None and _stands_in(view, pointer, restored):
            text = marker.write_moved(pointer.marker, _what(pointer), restored.label)
            pointers.append(replace(pointer, sources=(restored.call_id,), marker=text))
        else:
            text = marker.write_gone(pointer.marker, _what(pointer))
            pointers.append(replace(pointer, sources=(), marker=text))
        lines[pointer.line] = text
    return Settled(event.call_id, "\n".join(lines), event.pieces, tuple(pointers), lost=False)


class RetiredMarkers:
    """Markers of replies that the view no longer has, known again by what the log says. It is read when a marker is met
    that is not known."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, Delivered | Settled]] = {}  # marker -> the replies that it is in, by call id
        self._pointers: dict[str, str] = {}  # marker -> what is to stand in its place
        self._foreign: set[str] = set()  # lines like markers that no reply ever had

    def known(
        self, found: Sequence[str], log: Callable[[], Iterable[Event]]
    ) -> dict[str, dict[str, Delivered | Settled]]:
        """Those of the markers that promise something, each with the replies that it is in, by call id."""
        if any(line not in self._made and line not in self._foreign for line in found):
            self._read(log())
            self._foreign.update(line for line in found if line not in self._made)
        return {line: self._made[line] for line in found if line in self._made}

    def instead(self, line: str) -> str:
        """What is to stand in a marker's place."""
        return self._pointers[line]

    def retired(self, event: Delivered | Settled) -> str:
        """The reply with all of its markers retired."""
        return "\n".join(self._pointers.get(line, line) for line in event.text.split("\n"))

    def _read(self, log: Iterable[Event]) -> None:
        for event in log:
            if not isinstance(event, (Delivered, Settled)):
                continue
            for pointer in event.pointers:
                if pointer.sources and pointer.line >= 0:
                    made = self._made.setdefault(pointer.marker, {})
                    made.pop(event.call_id, None)  # the newest is last
                    made[event.call_id] = event
                    self._pointers[pointer.marker] = marker.write_gone(pointer.marker, _what(pointer))


def _what(pointer: Pointer) -> str:
    if pointer.path is not None:
        return marker.name_lines(pointer.path, [(pointer.start, pointer.end)])
    return f"lines {pointer.start}-{pointer.end} of this output"


def _stands_in(view: View, pointer: Pointer, restored: Delivered) -> bool:
    """True if the restored section holds the very lines that the marker stands for."""
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
        if reference.event.call_id not in pointer.sources or start != pointer.start + len(out):
            return None
        out += view.bodies(reference)[start - first : end - first + 1]
    return out if len(out) == pointer.end - pointer.start + 1 else None
