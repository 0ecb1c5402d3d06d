"""Convert events to plain data and back, and give the names that find a stored event. Pure.

`encode` splits an event into its kind, a body for JSON, and its text. Stores keep texts apart, because texts are large
and repeat. The body omits fields at their default, so a default is part of the format. `decode` is strict: an unknown
kind, field or value was written by a newer version. A guess could credit a reader with text that it never saw.
"""

from __future__ import annotations

import enum
import functools
import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from readcache.core.model.claims import WHOLE_TREE
from readcache.core.model.errors import StoreError
from readcache.core.model.events import (
    Amended,
    Cleared,
    Closed,
    Compacted,
    Delivered,
    Event,
    Failed,
    Forgot,
    Missed,
    Record,
    Rewound,
    Wrote,
)
from readcache.core.model.records import UNREADABLE
from readcache.core.model.reply import Reason
from readcache.core.model.text import digest

# The kinds of names that find a call. PATH: a file that it shows or has a marker for. TEXT: the digest of its text.
# CHANGED: a file that had changed when the call showed it. SOURCE: the call with a whole output that this one omitted.
# REWOUND: the conversation was rewound to the call.
PATH, TEXT, CHANGED, SOURCE, REWOUND = "path", "text", "changed", "source", "rewound"

# The stored names of the event classes. Never change a released name: older stores could no longer be read.
KINDS: Mapping[str, type[Event]] = {
    "delivered": Delivered,
    "wrote": Wrote,
    "settled": Amended,
    "cleared": Cleared,
    "compacted": Compacted,
    "forgot": Forgot,
    "rewound": Rewound,
    "closed": Closed,
    "failed": Failed,
    "missed": Missed,
}
_KIND_OF = {cls: kind for kind, cls in KINDS.items()}

# Fields of events that have an older name in stores and in the protocol.
_STORED_NAMES = {
    "source_map": "pieces",
    "markers": "pointers",
    "wording": "marker",
    "possible_writes": "perhaps",
    "source_spans": "stands",
}

NEWER = "it was probably written by a newer readcache: upgrade this one, or use another store"

Decoder = Callable[[Any], Any]


def encode(event: Event) -> tuple[str, dict[str, Any], str | None]:
    """Return (kind, body, text). The text is None for an event that has none."""
    return _KIND_OF[type(event)], _plain_fields(event), getattr(event, "text", None)


def kind_of(event: Event) -> str:
    """Return the stored name of the event's class."""
    return _KIND_OF[type(event)]


def stored_name(field: str) -> str:
    """Return the name of an event's field in stores and in the protocol."""
    return _STORED_NAMES.get(field, field)


def decode(kind: str, body: object, text: str | None) -> Event:
    """Return the event that `encode` split. Raise StoreError for anything that this version does not write."""
    if kind not in KINDS:
        raise StoreError(f"unknown event {kind!r} in the store; {NEWER}")
    cls: Any = KINDS[kind]
    values = _decode_fields(cls, body)
    if (text is not None) != ("text" in _decoders(cls)):
        raise StoreError(f"event {kind!r} in the store has {'a' if text else 'no'} text; the store is damaged")
    if text is not None:
        values["text"] = text
    event: Event = _build(cls, values)
    return event


def unreadable(seq: int, agent_id: str, at: float, error: Exception) -> list[Record]:
    """Return the replacement for a stored event that cannot be read: a failure, and the loss of everything visible.
    The event may have removed texts from the view."""
    detail = f"event {seq} {UNREADABLE}: {error}" + ("" if isinstance(error, StoreError) else "; the store is damaged")
    lost: list[Event] = [Failed("", Reason.STORE_FAILED.value, detail), Compacted(frozenset())]
    return [Record(seq, agent_id, at, event) for event in lost]


def is_storable(event: Event) -> bool:
    """Return False if the event could not be read again: a value has another type than its field, or is not JSON."""
    try:
        kind, body, text = encode(event)
        return decode(kind, json.loads(json.dumps(body)), text) == event
    except (StoreError, TypeError, ValueError, AttributeError, RecursionError):
        return False


def names(event: Event) -> Iterator[tuple[str, str]]:
    """Yield the (what, name) pairs that find the event's call, each once; see `wanted`.

    A delivery that showed that a file changed, and a call that was rewound to, still count when they are gone.
    """
    if isinstance(event, Rewound):
        yield REWOUND, ""
    if not isinstance(event, Delivered | Amended):
        return
    if event.text:
        yield TEXT, digest(event.text)
    keys = {key for mapped in event.source_map for key in mapped.keys}
    keys.update(marker.path for marker in event.markers if marker.path is not None)
    for path in keys:
        yield PATH, path
    for source in {source for marker in event.markers if marker.path is None for source in marker.sources}:
        yield SOURCE, source
    for path in set(event.changed) if isinstance(event, Delivered) else ():
        yield CHANGED, path


def wanted(keys: Iterable[str], digests: Iterable[str]) -> set[tuple[str, str]]:
    """Return the names that find the calls relevant to a judgement on `keys` and `digests`."""
    found = {(TEXT, name) for name in digests} | {(REWOUND, ""), (CHANGED, WHOLE_TREE)}
    for path in keys:
        found.add((PATH, path))
        found.update((CHANGED, above) for above in _and_directories_above(path))
    return found


def _and_directories_above(path: str) -> Iterator[str]:
    yield path
    while (at := path.rfind("/")) >= 0 and path != "/":
        path = path[:at] or "/"
        yield path


def _plain_fields(value: Any) -> dict[str, Any]:
    return {
        stored: _plain(item)
        for name, stored, default in _defaults(value.__class__)
        if name != "text" and (item := getattr(value, name)) != default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    return _plain_fields(value) if is_dataclass(value) else value


@functools.cache
def _defaults(cls: Any) -> tuple[tuple[str, str, Any], ...]:
    return tuple((field.name, stored_name(field.name), field.default) for field in fields(cls))


def _decode_fields(cls: Any, body: object) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise StoreError(f"a {cls.__name__} in the store is not an object; the store is damaged")
    decoders = _decoders(cls)
    unknown = body.keys() - decoders.keys()
    if unknown:
        raise StoreError(f"unknown field {min(unknown)!r} of a {cls.__name__} in the store; {NEWER}")
    try:
        return {decoders[name][0]: decoders[name][1](value) for name, value in body.items()}
    except (TypeError, ValueError) as error:
        raise StoreError(f"unknown value in a {cls.__name__} in the store ({error}); {NEWER}") from None


def _build(cls: Any, values: dict[str, Any]) -> Any:
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:  # a field is missing, or has a value that makes no sense
        raise StoreError(f"{error}; the store is damaged") from None


@functools.cache
def _decoders(cls: Any) -> dict[str, tuple[str, Decoder]]:
    """Return (name of the field, its decoder) by the field's stored name."""
    hints = typing.get_type_hints(cls)
    return {stored_name(field.name): (field.name, _decoder(hints[field.name])) for field in fields(cls)}


def _decoder(hint: Any) -> Decoder:
    """Return the function that turns a result of `_plain` back into a value of type `hint`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union) and arguments[1:] == (types.NoneType,):
        present = _decoder(arguments[0])
        return lambda value: None if value is None else present(value)
    if origin in (tuple, frozenset):
        item = _decoder(arguments[0])
        return lambda value: origin(map(item, _checked(value, list)))
    if origin is Mapping:
        return lambda value: _checked(value, dict)
    if is_dataclass(hint):
        return lambda value: _build(hint, _decode_fields(hint, value))
    as_enum: Decoder | None = hint if issubclass(hint, enum.Enum) else None
    return as_enum or (lambda value: _checked(value, hint))


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} expected, {type(value).__name__} found")
    return value
