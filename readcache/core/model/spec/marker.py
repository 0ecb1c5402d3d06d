"""What a marker says, and what is found out about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A place that a marker names: a call, and if they are known which of its texts, and which lines of that."""

    call: str
    kind: str = ""
    at: int = -1  # from 0; -1: anywhere
    count: int = 0


@dataclass(frozen=True, slots=True)
class Marker:
    """One line of a text, which stands for `lines` as the tool printed them. `lines`: None if they are unknown."""

    line: int  # its place in the text, from 0; below: the host cut it away
    words: str
    lines: tuple[str, ...] | None
    sources: tuple[NamedSource, ...]
    file: str | None = None  # whose lines they are; None: of the output
    first: int = 1  # the number of the first of them there


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about a marker, or about a whole reply (None). `untold`: it cannot be told, and why."""

    call: str
    marker: Marker | None
    fault: str = ""
    untold: str = ""


class Untrue(Exception):
    """The promise does not hold. The text says why."""


def demand(findings: Iterable[Finding]) -> list[Finding]:
    """The findings. Raises Untrue if one of them has a fault."""
    found = list(findings)
    for finding in found:
        if finding.fault:
            raise Untrue(finding.fault)
    return found
