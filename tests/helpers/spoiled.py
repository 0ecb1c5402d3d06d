"""JSON in which any value is another one."""

from __future__ import annotations

import copy
import random
from typing import Any

ODD: tuple[object, ...] = (
    None, True, -1, 1.5, 2**70, 10**400,
    "", "\0", "\ud800", "2026-13-99T99:99Z", [], [None], [[]], {}, {"": None}, [1, "a", {}],
)  # fmt: skip

Place = tuple[Any, ...]


def places(value: object, at: Place = ()) -> list[Place]:
    """Every place inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([at] if at else []), *(place for key, each in inner for place in places(each, (*at, key)))]


def put(value: Any, place: Place, new: object) -> None:
    for key in place[:-1]:
        value = value[key]
    value[place[-1]] = new


def get(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def spoil(seed: int, value: Any) -> None:
    """Some values become odd ones, or those of another place."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 5)):
        known = places(value)
        there, other = rng.choice(known), rng.choice(known)
        put(value, there, copy.deepcopy(rng.choice([*ODD, get(value, other), get(value, other)])))
