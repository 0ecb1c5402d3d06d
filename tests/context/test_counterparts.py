"""The tables that say where the tests of other systems went are true in what they name."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOP = HERE.parents[1]
DOCUMENTS = sorted(HERE.glob("*.md"))
QUOTED = r"`[^`]+`"
OWNER = rf"(?:\b([A-Z])|`(test_\w+)`): ({QUOTED}(?:, {QUOTED})*)"  # a test, by its name or its letter, and cases of it


@cache
def modules_of_tests() -> dict[str, list[str]]:
    """The modules in which a test of each name stands."""
    found = defaultdict(list)
    for path in sorted((TOP / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                found[node.name].append(".".join(path.relative_to(TOP).with_suffix("").parts))
    return found


@cache
def words_of_the_package() -> frozenset[str]:
    sources = (path.read_text(encoding="utf-8") for path in (TOP / "readcache").rglob("*.py"))
    return frozenset(word for source in sources for word in re.findall(r"\w+", source))


@cache
def cases_of(test: str) -> frozenset[str]:
    """The names of all parameters of a test."""
    names: set[str] = set()
    for module in modules_of_tests().get(test, ()):
        for mark in getattr(getattr(importlib.import_module(module), test, None), "pytestmark", ()):
            if mark.name == "parametrize":
                values = list(mark.args[1])
                ids = mark.kwargs.get("ids") or values
                names |= {str(value) for value in (map(ids, values) if callable(ids) else ids)}
    return frozenset(names)


def rows(text: str) -> list[tuple[str, str]]:
    """(there, here) for each row of the tables that have a column "here"."""
    found = []
    for table in re.findall(r"^\| .* \| here \|\n\| --- \| --- \|\n((?:\| .*\n)+)", text, re.MULTILINE):
        for line in table.splitlines():
            there, here = line.strip("| ").split(" | ")
            found.append((there, here))
    return found


def untrue(text: str) -> Iterator[str]:
    """What is named in the column "here" and is not there."""
    letters = dict(re.findall(r"^- \*\*([A-Z])\*\* is `(test_\w+)`", text, re.MULTILINE))
    for there, here in rows(text):
        for letter, test, cases in re.findall(OWNER, here):
            owner = test or letters.get(letter, "")
            for case in re.findall(r"`([^`]+)`", cases):
                if not case.startswith("test_") and case not in cases_of(owner):
                    yield f"{there}: {owner or letter} has no case {case}"
        for test in re.findall(r"`(test_\w+)`", here):
            if test not in modules_of_tests():
                yield f"{there}: no test {test}"
        for name in re.findall(r"`([^`]+)`", re.sub(OWNER, "", here)):
            words = re.findall(r"\w+", name)
            if not name.startswith("test_") and not words_of_the_package().issuperset(words):
                yield f"{there}: nothing is called {name}"
        if not re.search(rf"{OWNER}|`test_\w+`|^none: ", here):
            yield f"{there}: neither a test nor why there is none"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_and_case_that_a_table_names_is_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert list(untrue(text)) == []
    assert len(rows(text)) > 10


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8")):
        assert (HERE / target).exists(), target


@pytest.mark.parametrize(
    ("here", "found"),
    [
        ("`test_a_test_that_is_not_there`", "a: no test test_a_test_that_is_not_there"),
        ("C: `pairs`", "a: C has no case pairs"),
        ("`test_repairing`: `pairs`, `trios`", "a: test_repairing has no case trios"),
        ("`test_repairing`, in `no_such_name`", "a: nothing is called no_such_name"),
        ("it is so", "a: neither a test nor why there is none"),
    ],
)
def test_what_a_table_names_and_is_not_there_is_noticed(here: str, found: str) -> None:
    assert list(untrue(f"| there | here |\n| --- | --- |\n| a | {here} |\n")) == [found]
