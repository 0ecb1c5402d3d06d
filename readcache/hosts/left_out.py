"""The lines that a reply's markers stand for, kept beside it in a host's own state. Put them back when no session knows
the reply any more: its log in memory ended with the process, or readcache was switched off.
"""

from __future__ import annotations

from collections.abc import Iterable

from readcache import Reply


def lines_left_out(reply: Reply) -> list[list[str]]:
    """[marker, lines] for each marker, in order."""
    return [[marker, "\n".join(lines)] for _, marker, lines in reply.omissions()]


def put_back(text: str, kept: Iterable[Iterable[str]]) -> str:
    """The text with the lines in the places of their markers."""
    for marker, lines in kept:
        text = text.replace(marker, lines)
    return text
