"""Which lines the markers of a reply stand for, to be kept beside it in a host's own state.

Whoever finds a reply there of which no session knows any more puts the lines back: a log in memory ended with its
process, or readcache was switched off.
"""

from __future__ import annotations

from collections.abc import Iterable

from readcache import Omitted, Reply


def lines_left_out(reply: Reply) -> list[list[str]]:
    """[marker, lines] for each marker, in order."""
    out: list[list[str]] = []
    shown = at = 0  # places in the reply's text, and in the full one
    for segment in reply.segments:
        if isinstance(segment, Omitted):
            marker = reply.text[shown:].partition("\n")[0]
            lines = reply.full_text[at:].split("\n", segment.end - segment.start + 1)
            lost = "\n".join(lines[: segment.end - segment.start + 1])
            out.append([marker, lost])
            shown, at = shown + len(marker) + 1, at + len(lost) + 1
        else:
            shown, at = shown + len(segment.text), at + len(segment.text)
    return out


def put_back(text: str, kept: Iterable[Iterable[str]]) -> str:
    """The text with the lines in the places of their markers."""
    for marker, lines in kept:
        text = text.replace(marker, lines)
    return text
