"""Edits of a text: what is put in, and what is cut out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from readcache import UsageError


class TextEdit(NamedTuple):
    """`text` that is put in at a place, or `length` characters that are cut out there; places are those before."""

    at: int
    text: str = ""
    length: int = 0


class Format(NamedTuple):
    """A kind of settings file: its value, and the edits that put a value in or cut one out. UsageError."""

    read: Callable[[str], object]
    put: Callable[[str, Sequence[str], object], list[TextEdit]]
    cut: Callable[..., list[TextEdit]]


def edited(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with all of them."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.at] + edit.text + text[edit.at + edit.length :]
    return text


def edits_between(before: str, after: str) -> list[TextEdit]:
    """The edits that make `after` of `before`, by what was put in or by what was cut out. UsageError where it takes
    both, in a line or in several."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    if len(before) == start + end:
        return [TextEdit(start, after[start : len(after) - end])]
    if len(after) == start + end:
        return [TextEdit(start, length=len(before) - start - end)]
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    edits, places = [], [0]
    for line in old:
        places.append(places[-1] + len(line))
    for what, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "replace":
            raise UsageError("it would have to be written in another way")
        if what == "insert":
            edits.append(TextEdit(places[i], "".join(new[k:m])))
        elif what == "delete":
            edits.append(TextEdit(places[i], length=places[j] - places[i]))
    return edits


def _common(one: str, other: str) -> int:
    """Characters at the beginning that are the same."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
