"""Ways to break the package at its edges: a function that others call is replaced wherever a module knows it by name.

A change that fails leaves everything as it is. So a mutant whose patch no longer fits the package survives, which its
test tells, instead of seeming to die of an error. That does not help where a function gives another type than before:
look at its mutants then.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import readcache
from tests.laws.mutants.mutants import Mutant, Patch

_PACKAGE, _TESTS = str(Path(readcache.__file__).parent), str(Path(__file__).parents[3])


@dataclass(frozen=True)
class Guarded:
    """A mutant, and the tests that must fail with it: `tests/FOLDER/FILE.py::NAME`, without parameters."""

    mutant: Mutant
    killers: tuple[str, ...]


def guarded(name: str, patches: Callable[[], list[Patch]], *killers: str) -> Guarded:
    """Return the mutant with these patches. `killers`: the ids of tests, from below `tests/`."""
    return Guarded(Mutant(name, patches), tuple(f"tests/{killer}" for killer in killers))


def each(change: Callable[[Any], Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function that changes each thing an iterator gives. One whose change fails stays as it is."""

    def changed(things: Iterable[Any]) -> Iterator[Any]:
        for thing in things:
            new = thing
            with contextlib.suppress(Exception):
                new = change(thing)
            yield new

    return changed


def gives(function: Callable[..., Any], change: Callable[..., Any]) -> Callable[[], list[Patch]]:
    """Make the function return `change(result)` instead of its result."""

    @functools.wraps(function)
    def mutated(*args: Any, **known: Any) -> Any:
        result = function(*args, **known)
        with contextlib.suppress(Exception):
            changed = change(result)
            is_same = changed == result and repr(changed) == repr(result)  # some fields are not compared
            return result if is_same else changed  # some tests ask for the very same one
        return result

    return lambda: list(_everywhere(function, mutated))


def takes(function: Callable[..., Any], change: Callable[..., dict[str, Any]]) -> Callable[[], list[Patch]]:
    """Change arguments of the function: `change` is given them by name, and returns the changed ones."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def mutated(*args: Any, **known: Any) -> Any:
        with contextlib.suppress(Exception):
            given = signature.bind(*args, **known).arguments
            changed = signature.bind(**{**given, **change(**given)})  # fails where an argument has another name now
            args, known = changed.args, changed.kwargs
        return function(*args, **known)

    return lambda: list(_everywhere(function, mutated))


def instead(function: Callable[..., Any], other: Callable[..., Any]) -> Callable[[], list[Patch]]:
    """Call the other function instead of this one. If the other one fails, call this one."""

    @functools.wraps(function)
    def mutated(*args: Any, **known: Any) -> Any:
        with contextlib.suppress(Exception):
            return other(*args, **known)
        return function(*args, **known)

    return lambda: list(_everywhere(function, mutated))


def after(function: Callable[..., Any], change: Callable[[Any], None]) -> Callable[[], list[Patch]]:
    """Change an object after this method of it was called."""

    @functools.wraps(function)
    def mutated(own: Any, *args: Any, **known: Any) -> Any:
        result = function(own, *args, **known)
        with contextlib.suppress(Exception):
            change(own)
        return result

    return lambda: list(_everywhere(function, mutated))


def _everywhere(function: Callable[..., Any], new: Callable[..., Any]) -> Iterator[Patch]:
    """Return patches for each name of the function in our modules and their classes, those of tests included."""
    for module_name, module in sorted(sys.modules.items()):
        if not (getattr(module, "__file__", None) or "").startswith((_PACKAGE, _TESTS)):
            continue
        for name, value in list(vars(module).items()):
            if value is function:
                yield module, name, new
            elif isinstance(value, type) and value.__module__ == module_name:
                yield from ((value, own, new) for own, inner in vars(value).items() if inner is function)
