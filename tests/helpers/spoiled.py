"""JSON in which any value is another one."""

from __future__ import annotations

import copy
import random
from typing import Any

ODD: tuple[object, ...] = (
    None, True, -1, 1.5, 2**70, 10**400,
    "", "\0", "\ud800", "2026-13-99T99:99Z", [], [None], [[]], {}, {"": None}, [1, "a", {}],
)  # fmt: skip

Path = tuple[Any, ...]


def paths(value: object, at: Path = ()) -> list[Path]:
    """Every place inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([at] if at else []), *(path for key, each in inner for path in paths(each, (*at, key)))]


def put(value: Any, path: Path, new: object) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def get(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def spoil(seed: int, value: Any) -> None:
    """Some values become odd ones, or those of another place."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 5)):
        known = paths(value)
        there, other = rng.choice(known), rng.choice(known)
        put(value, there, copy.deepcopy(rng.choice([*ODD, get(value, other), get(value, other)])))
