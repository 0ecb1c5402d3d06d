"""The table of reported failures names tests that exist, and none of its numbers is left out."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TABLE = (TESTS / "failures.md").read_text(encoding="utf-8")


def test_every_test_that_the_table_of_failures_names_exists() -> None:
    sources = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    there = {name for source in sources for name in re.findall(r"^ *def (test_\w+)\(", source, re.MULTILINE)}
    assert set(re.findall(r"`(test_\w+)`", TABLE)) - there == set()


def test_every_failure_has_a_row() -> None:
    assert sorted(map(int, re.findall(r"^\| F(\d+) \|", TABLE, re.MULTILINE))) == list(range(1, 114))


def test_every_failure_of_peers_has_a_row() -> None:
    assert re.findall(r"^\| (N\d+) \|", TABLE, re.MULTILINE) == [f"N{number}" for number in range(1, 15)]
