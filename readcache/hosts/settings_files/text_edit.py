"""Edits of a text: what is put in, and what is cut out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class TextEdit(NamedTuple):
    """`text` that is put in at a place, or `length` characters that are cut out there; places are those before."""

    at: int
    text: str = ""
    length: int = 0


def edited(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with all of them."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.at] + edit.text + text[edit.at + edit.length :]
    return text
