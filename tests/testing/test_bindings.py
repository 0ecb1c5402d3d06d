"""What pyfakefs cannot replace: functions of the file system that were bound before it became active."""

from __future__ import annotations

import functools
import importlib
import inspect
import io
import os
import pkgutil
import shutil
from collections.abc import Iterator
from typing import Any

import readcache

# Where no mocked file system is of use: SQLite and processes do not see one.
REAL = ("readcache.__main__", "readcache.cli.main", "readcache.log.store.sqlite")
HOMES = (os, os.path, io, shutil)
FUNCTIONS = {value for home in HOMES for value in vars(home).values() if inspect.isroutine(value)} | {open}


def bound(value: Any, depth: int = 0) -> bool:
    """Is it such a function, or does it hold one?"""
    if isinstance(value, functools.partial):
        return bound(value.func)
    if isinstance(value, staticmethod | classmethod):
        return bound(value.__func__)
    if isinstance(value, dict | list | tuple | set | frozenset) and depth < 3:
        return any(bound(inner, depth + 1) for inner in (value.values() if isinstance(value, dict) else value))
    return inspect.isroutine(value) and (value in FUNCTIONS or any(map(bound, defaults(value))))


def defaults(function: Any) -> list[Any]:
    keywords = getattr(function, "__kwdefaults__", None) or {}
    return [*(getattr(function, "__defaults__", None) or ()), *keywords.values()]


def names(module: Any) -> Iterator[tuple[str, Any]]:
    """Everything defined or imported in a module, and what its classes define."""
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        yield name, value
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield from ((f"{name}.{inner}", held) for inner, held in vars(value).items())


def modules() -> Iterator[Any]:
    """Every module of the package that can be imported here: some need packages that are optional."""
    for _, name, _ in pkgutil.walk_packages(readcache.__path__, "readcache."):
        if not name.startswith(REAL):
            try:
                yield importlib.import_module(name)
            except ModuleNotFoundError as error:
                if str(error.name).startswith("readcache"):
                    raise


def test_no_function_of_the_file_system_is_bound_before_it_may_be_mocked() -> None:
    found = [f"{module.__name__}.{name}" for module in modules() for name, value in names(module) if bound(value)]
    assert found == []


def test_such_a_binding_would_be_found() -> None:
    class Home:
        stat = staticmethod(os.stat)

    def opens(path: str, opener: Any = open) -> Any:
        return opener(path)

    table = {"read": [os.read]}
    partial = functools.partial(os.path.join, "/")
    held = (vars(Home)["stat"], opens, table, partial, os.listdir, shutil.which)
    assert all(bound(value) for value in held)
    assert not any(bound(value) for value in (len, os.sep, Home, "open", {"read": 1}))
