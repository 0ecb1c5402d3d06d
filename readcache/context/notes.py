"""The texts that stand where something was pruned: their wording is spelled here and nowhere else.

A note tells of the past and promises nothing about what else is in view, so that no later pruning or compaction can
make it untrue. It is no marker: what was pruned no longer counts as seen, and a repeated request is answered anew.

    [PRUNED 7f3a: app.py lines 1-40, the same bytes were shown again later; repeat the request to see]
"""

from __future__ import annotations

from collections.abc import Sequence

from readcache.judging.marker import name_of

MOST_NAMED = 3  # files, and stretches of a file; as many as a marker names sources


def duplicate(tag: str, what: str, *, later: bool) -> str:
    """For a result whose bytes stand in others."""
    where = "were shown again later" if later else "had been shown before"
    return _note(tag, f"{what}, the same bytes {where}; repeat the request to see")


def superseded(tag: str, what: str) -> str:
    """For a read of a file that was then overwritten."""
    return _note(tag, f"{what} as read before the file was overwritten as a whole; read the file to see it as it is")


def lines_left_out(tag: str, lines: int, chars: int) -> str:
    """For the middle of a long text."""
    what = f"{lines:,} lines ({chars:,} characters)" if lines > 1 else f"{chars:,} characters"
    return _note(tag, f"{what} left out here; ask for them to see them")


def failed_input(tag: str, chars: int) -> str:
    """For an argument of a call that failed."""
    return _note(tag, f"{chars:,} characters of the input of a call that failed")


def image(tag: str) -> str:
    """For an image."""
    return _note(tag, "an image was shown here")


def is_note(text: str) -> bool:
    """Is that a note and nothing else?"""
    return text.startswith("[PRUNED") and text.endswith("]") and "\n" not in text


def has_note(text: str) -> bool:
    """Does a line of it begin as a note does? Then its lines cannot be counted."""
    return text.startswith("[PRUNED") or "\n[PRUNED" in text


def name_stretches(stretches: Sequence[tuple[str, int, int]]) -> str:
    """`app.py lines 1-40, 90-95 and b.py lines 3-9` for (path, first, last) in order."""
    spans: dict[str, list[str]] = {}
    for path, first, last in stretches:
        spans.setdefault(path, []).append(f"{first}-{last}")
    names = [f"{name_of(path)} lines {', '.join(_few(runs))}" for path, runs in spans.items()]
    return " and ".join(_few(names))


def _few(names: list[str]) -> list[str]:
    more = len(names) - MOST_NAMED
    return names if more <= 0 else [*names[:MOST_NAMED], f"{more} more"]


def _note(tag: str, text: str) -> str:
    return f"[PRUNED {tag}: {text}]" if tag else f"[PRUNED: {text}]"
