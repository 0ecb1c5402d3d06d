"""What pyfakefs cannot replace: functions of the file system that are bound when a module is imported.

pyfakefs puts its own functions in the place of `os.stat` and its like. A call finds those by name. A default argument,
a class attribute, a table or `from os import stat` keeps the real one.
"""

from __future__ import annotations

import ast
import inspect
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import readcache

HOMES = {"os": os, "os.path": os.path, "io": io, "shutil": shutil}
FUNCTIONS = {
    f"{home}.{name}" for home, module in HOMES.items() for name in dir(module) if inspect.isroutine(vars(module)[name])
}
PACKAGE = Path(readcache.__file__).parent


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """All that is evaluated when the module is imported: everything but the bodies of functions."""
    yield node
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for name, value in ast.iter_fields(node):
        if not (is_function and name == "body"):
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    yield from at_import(inner)


def bound(source: str) -> list[str]:
    """The functions of the file system that the source names at import without calling them."""
    nodes = list(at_import(ast.parse(source)))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    named = [ast.unparse(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute) and node not in called]
    taken = [f"{node.module}.{name.name}" for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names]
    return [name for name in (*named, *taken) if name in FUNCTIONS | {"open"}]


def test_no_function_of_the_file_system_is_bound_at_import() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert bound(path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize(
    "source",
    [
        "class Home:\n    stat = staticmethod(os.stat)",
        "def read(path, opener=open): ...",
        "TABLE = {'read': [os.read]}",
        "JOIN = functools.partial(os.path.join, '/')",
        "from os import listdir",
        "find = lambda name, which=shutil.which: which(name)",
    ],
)
def test_a_binding_at_import_would_be_found(source: str) -> None:
    assert len(bound(source)) == 1


@pytest.mark.parametrize(
    "source", ["def read(path):\n    return os.stat(path)", "HERE = os.getcwd()", "SEPARATOR = os.sep"]
)
def test_a_call_by_name_is_no_binding(source: str) -> None:
    assert bound(source) == []
