"""The package's words: `docs/glossary.md` defines them, and no identifier uses a retired one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
FILES = sorted((TOP / "readcache").rglob("*.py"))
GLOSSARY = (TOP / "docs/glossary.md").read_text(encoding="utf-8")
RETIRED = {
    *("arm", "arms", "bounce", "bounces", "cut", "cuts", "dangling", "glance", "held", "hold", "holds", "insist"),
    *("insists", "lane", "lanes", "mend", "onlooker", "perhaps", "piece", "pieces", "place", "placed", "places"),
    *("pointer", "pointers", "ran", "reference", "references", "settle", "settled", "stand", "standing", "stands"),
    *("stretch", "sure", "tally", "trouble", "troubles", "trust", "unmended", "withheld", "withhold"),
}
# Names of the public interface, keys of JSON and of stored rows, and terms of other programs.
PUBLIC = {
    *("Insist", "cut_points", "insist", "mend", "mend_and_clear", "next_cut", "settle"),
    "trouble",  # Report.trouble is public
    *("bounces", "cut", "cuts", "held", "place"),  # counters, and a record of `init`
    *("HOLDS_A_MARKER", "_IN_PLACE"),  # a pattern of plugins, the option of sed
}


@cache
def identifiers(path: Path) -> frozenset[str]:
    """Return the names in a file's code, those in f-strings too: tokenize tells them since Python 3.12 only. The
    package's modules are counted by `test_no_module_…`."""
    fields = ("id", "attr", "arg", "name", "asname", "rest", "names")
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    values = [getattr(node, field, None) for node in nodes for field in fields]
    return frozenset(
        name for value in values for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)
    )


def retired_in(name: str) -> set[str]:
    """Return the retired words in a name of either form, CamelCase or with underscores."""
    return RETIRED.intersection(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))


def is_said(name: str) -> bool:
    """True if it is the sentence of a test in a suite for adapters, or public with an underscore before or after."""
    return name.startswith("test_") or name in PUBLIC or name.strip("_") in PUBLIC


def test_no_identifier_uses_a_retired_word() -> None:
    modules = {path.stem for path in FILES}
    found = {(name, path.name) for path in FILES for name in identifiers(path) if retired_in(name)}
    assert sorted((name, where) for name, where in found if not is_said(name) and name not in modules) == []


def test_no_public_name_is_exempt_that_is_gone() -> None:
    names = {name for path in FILES for name in identifiers(path)}
    assert names >= PUBLIC


@pytest.mark.parametrize("word", sorted(RETIRED))
def test_a_retired_word_is_found_in_names_of_both_forms(word: str) -> None:
    assert retired_in(f"old_{word}_of") == retired_in(f"Old{word.title()}Of") == {word}


def test_the_glossary_lists_what_is_retired() -> None:
    listed = GLOSSARY.split("## Retired words")[1]
    words = set(re.findall(r"[a-z]+", listed.split(":", 1)[1]))
    assert {word for word in RETIRED if word.removesuffix("s") not in RETIRED - {word}} <= words


def test_the_glossary_defines_names_that_exist() -> None:
    names = {name for path in FILES for name in identifiers(path)}
    coded = {name for name in re.findall(r"`(\w+)`", GLOSSARY.split("## Retired words")[0]) if name not in ("git",)}
    assert coded - names == set()
