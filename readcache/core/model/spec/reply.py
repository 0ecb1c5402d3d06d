"""The account that a reply gives of an output: what it shows, and what its markers stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from readcache.core.model.spec.marker import Marker, NamedSource


class Answer(Protocol):
    """A reply, as far as it is looked at."""

    @property
    def call_id(self) -> str:
        """The harness's name for the call."""

    @property
    def text(self) -> str:
        """What the model is sent."""

    @property
    def full_text(self) -> str:
        """What the tool printed."""

    @property
    def segments(self) -> Sequence[Any]:
        """Stretches of it in order, shown or left out. These have `sources`."""

    def omissions(self) -> list[tuple[Any, str, list[str]]]:
        """(what was left out, the marker, the lines) for each omission."""


def markers_of(reply: Answer) -> tuple[list[Marker], str]:
    """The markers of a reply, and what is wrong with its account."""
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
    """What is wrong with a text that should be the output, but for its markers."""
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
    """The places of the lines in the output that the markers stand for."""
    more = 0
    for marker in markers:
        count = len(marker.lines or ())
        yield from range(marker.line + more, marker.line + more + count)
        more += count - 1
