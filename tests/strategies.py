"""Hypothesis strategies for the vocabulary."""

from __future__ import annotations

import dataclasses
import enum
import typing
from typing import Any

from hypothesis import strategies as st

from readcache.events import Event

AWKWARD_TEXTS = ("", "\n", "\0", "a\0b\n", "a\r\nb\r\n", "\r", "\ud83d\ude00", "\udcff", "😀\n", "\u2028é\x85", "a\nb")


def texts() -> st.SearchStrategy[str]:
    """Any `str` at all: lone surrogates, NUL, CRLF, nothing."""
    anything = st.text(st.characters(exclude_categories=()))
    return st.one_of(st.sampled_from(AWKWARD_TEXTS), st.text("ab \t\r\n"), anything)


def events() -> st.SearchStrategy[Event]:
    """Events of every kind, each field any value of its type."""
    return st.one_of(*(any_value(cls) for cls in typing.get_args(Event)))


def any_value(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type of the vocabulary, each part varied by itself."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (tuple, frozenset):
        return st.lists(any_value(arguments[0]), max_size=3).map(origin)
    if arguments:
        return st.one_of(*map(any_value, arguments))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{field.name: any_value(hints[field.name]) for field in dataclasses.fields(hint)})
    if issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    known: dict[type, st.SearchStrategy[Any]] = {
        str: texts(),
        int: st.integers(),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return known[hint]
