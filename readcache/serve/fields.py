"""Check the JSON of a request, and its fields. An error names the wrong field, and the values that it accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from readcache import UsageError

MOST = 2**53  # every JSON reader keeps integers up to this exactly


class Field(NamedTuple):
    """A kind of value: its name in errors, and a function that returns True for a value of this kind."""

    what: str
    fits: Callable[[Any], bool]


def _is_complete(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MOST


def _is_seconds(value: object) -> bool:
    return type(value) in (int, float) and 0 < float(str(value)) <= MOST


TEXT = Field("a text", lambda value: isinstance(value, str))
FLAG = Field("true or false", lambda value: isinstance(value, bool))
FLAG_OR_TEXT = Field("true, false or a text", lambda value: isinstance(value, bool | str))
LINE = Field("a whole number from 0 up", lambda value: _is_complete(value, 0))
STATUS = Field("a whole number", lambda value: _is_complete(value, -MOST))
SECONDS = Field("a number of seconds above 0", _is_seconds)
OBJECT = Field("an object", lambda value: isinstance(value, dict))
IDS = Field("a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value))
COUNT_OR_IDS = Field("a whole number from 0 up, or a list of texts", lambda value: LINE.fits(value) or IDS.fits(value))
MESSAGES = Field(
    "a list of objects", lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value)
)
NAMES = Field(
    "an object with texts", lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
)


def checked(of: str, given: Mapping[str, Any], fields: Mapping[str, Field], needed: Collection[str]) -> dict[str, Any]:
    """Return the given values. A null counts as absent, except in `exit_code`, where it means unknown.

    `of`: the name for errors, such as the method. Raise UsageError if a field is unknown, wrong or missing.
    """
    for name, value in given.items():
        if name not in fields:
            raise UsageError(f"{of} has no field {name!r}: give {', '.join(fields) or 'none'}")
        if value is not None and not fields[name].fits(value):
            raise UsageError(f"{of}: {name} is not {fields[name].what}: give one, or leave it out")
    values = {name: value for name, value in given.items() if value is not None or name == "exit_code"}
    if missing := [name for name in needed if name not in values]:
        raise UsageError(f"{of} needs {' and '.join(sorted(missing))}")
    return values


def strict_json(text: str) -> Any:
    """Return the value of a JSON text. Raise ValueError if it is not JSON (NaN is not), or if a number does not fit a
    float."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _finite(number: str) -> float:
    if math.isinf(found := float(number)):
        raise ValueError(f"{number} does not fit a float")
    return found
