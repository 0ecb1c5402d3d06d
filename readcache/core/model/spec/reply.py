"""The account that a reply gives of an output: the lines that it shows, and the lines that its markers replace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from readcache.core.model.spec.marker import Marker, NamedSource


class Answer(Protocol):
    """The part of a reply that the specification needs."""

    @property
    def call_id(self) -> str:
        """The harness's name for the call."""

    @property
    def text(self) -> str:
        """The text that the model is sent."""

    @property
    def full_text(self) -> str:
        """The output that the tool printed."""

    @property
    def segments(self) -> Sequence[Any]:
        """The parts of the output in order, shown or omitted. Only omitted parts have `sources`."""

    def omissions(self) -> list[tuple[Any, str, list[str]]]:
        """Return (omission, marker, lines) for each omission."""


def markers_of(reply: Answer) -> tuple[list[Marker], str]:
    """Return the markers of a reply, and the error in its account ("" if there is none)."""
    markers, text, omissions = list[Marker](), "", iter(reply.omissions())
    for segment in reply.segments:
        if not hasattr(segment, "sources"):
            text += segment.text
            continue
        omitted, words, lines = next(omissions)
        sources = tuple(map(NamedSource, omitted.sources))
        markers.append(Marker(text.count("\n"), words, tuple(lines), sources, omitted.path, omitted.start))
        text += f"{words}\n"
        if words[:1] != "[":
            return markers, "an omission has no marker in its place"
        if len(lines) != omitted.end - omitted.start + 1:
            return markers, "the segments do not add up to the output"
    return markers, "" if text == reply.text else "the segments do not add up to the reply"


def account_fault(text: str, markers: Sequence[Marker], output: str) -> str:
    """Return the error in a text that must equal the output once its markers are replaced by their lines; "" if there
    is none."""
    lines, at = text.removesuffix("\n").split("\n") if text else [], {marker.line: marker for marker in markers}
    rebuilt: list[str] = []
    for number, line in enumerate(lines):
        marker = at.pop(number, None)
        if marker is not None and marker.words != line:
            return "the segments do not add up to the reply"
        rebuilt += [line] if marker is None else marker.lines or ()
    ends_with_marker = any(marker.line == len(lines) - 1 for marker in markers)
    same_end = ends_with_marker or text.endswith("\n") == output.endswith("\n")
    same = rebuilt == (output.removesuffix("\n").split("\n") if output else [])
    return "" if same and same_end and not at else "the reply, with its markers' lines, is not the output"


def left_out(markers: Sequence[Marker]) -> Iterator[int]:
    """Yield the indexes of the output lines that the markers replace."""
    more = 0
    for marker in markers:
        count = len(marker.lines or ())
        yield from range(marker.line + more, marker.line + more + count)
        more += count - 1
