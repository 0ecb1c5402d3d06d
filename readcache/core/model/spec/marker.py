"""The words of a marker, and the findings about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source that a marker names: a call. If known, also one of the call's texts and the lines in it."""

    call: str
    kind: str = ""
    at: int = -1  # from 0; -1: anywhere
    count: int = 0


@dataclass(frozen=True, slots=True)
class Marker:
    """One line of a text, which replaces `lines` as the tool printed them. `lines`: None if they are unknown."""

    line: int  # its index in the text, from 0; negative: the host removed it
    words: str
    lines: tuple[str, ...] | None
    sources: tuple[NamedSource, ...]
    file: str | None = None  # the file that the lines belong to; None: the output
    first: int = 1  # the number of the first line in that file or output


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check of one marker, or of a whole reply (`marker` is None). `fault`: the error found; "" if
    there is none. `untold`: the reason why the check is impossible."""

    call: str
    marker: Marker | None
    fault: str = ""
    untold: str = ""


class Untrue(Exception):
    """A broken promise. The text says why."""


def demand(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings. Raise Untrue if one of them has a fault."""
    found = list(findings)
    for finding in found:
        if finding.fault:
            raise Untrue(finding.fault)
    return found
