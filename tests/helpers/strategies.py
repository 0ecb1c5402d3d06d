"""Hypothesis strategies for the vocabulary."""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from readcache.core.model.events import Compacted, Delivered, Event, Forgot, MappedSpan, Moment, Rewound, Wrote
from readcache.core.sync.amend import amend

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
    if origin is Mapping:
        return st.dictionaries(texts(), st.one_of(texts(), st.integers(), st.none(), st.lists(texts(), max_size=2)))
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


KEYS = ("/w/a", "/w/b", "/w/d/c")
CALLS = tuple(f"c{n}" for n in range(6))


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Logs of one context as sessions make them: call numbers and tokens rise, pieces lie within their texts."""
    events_: list[Event] = []
    texts: dict[str, Delivered] = {}
    call = 0
    for kind in draw(st.lists(st.sampled_from("ddddddwfscgr"), max_size=14)):
        name = draw(st.sampled_from(CALLS))
        if kind == "d":
            call += 1
            event = draw(_deliveries(name, call))
            texts[name] = event
            events_.append(event)
        elif kind in "wf":
            call += kind == "w"
            key = draw(st.sampled_from((*KEYS, "/w/d", "/w", "*", "/w/[ab]")))
            events_.append(Wrote(f"w{call}" if kind == "w" else "", (key,), "sed -i", call))
        elif kind == "s" and name in texts:
            events_.append(amend(texts[name], draw(st.sampled_from(("", "cut", texts[name].text[:40])))))
        elif kind == "c":
            events_.append(Compacted(draw(st.frozensets(st.sampled_from(CALLS)))))
        elif kind == "g":
            events_.append(Forgot(draw(st.frozensets(st.sampled_from(CALLS), max_size=2))))
        else:
            events_.append(Rewound(draw(st.sampled_from((name, f"w{call}")))))
    return events_


@st.composite
def _deliveries(draw: st.DrawFn, name: str, call: int) -> Delivered:
    source_map: list[MappedSpan] = []
    at = 0
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=2)):
        count, first = draw(st.integers(1, 6)), draw(st.integers(0, 8))
        source_map.append(MappedSpan((key,), at, count, first, eof=bool(first) and draw(st.booleans())))
        at += count
    text = "".join(f"{draw(st.sampled_from(('one', 'two')))} line {n}\n" for n in range(at))
    changed = draw(st.sampled_from(((), (), (), ("/w/a",))))
    when = Moment(call, call * 9)
    return Delivered(name, text, f"cat {name}", source_map=tuple(source_map), changed=changed, when=when)
