"""Edits of a text: what is put in, and what is cut out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


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
