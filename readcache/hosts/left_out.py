"""The lines that a reply's markers replace, kept beside the reply in a host's own state.

Restore them if no session knows the reply any longer: its log in memory ended with the process, or readcache was
switched off.
"""

from __future__ import annotations

from collections.abc import Iterable

from readcache import Reply


def lines_left_out(reply: Reply) -> list[list[str]]:
    """Return [marker, omitted lines] for each marker, in order."""
    return [[marker, "\n".join(lines)] for _, marker, lines in reply.omissions()]


def put_back(text: str, kept: Iterable[Iterable[str]]) -> str:
    """Return the text with the omitted lines instead of their markers."""
    for marker, lines in kept:
        text = text.replace(marker, lines)
    return text
