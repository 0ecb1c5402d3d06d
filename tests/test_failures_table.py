"""The table of reported failures names tests that run, and none of its numbers is left out."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.failures import TESTS, files_of_tests, named_tests, numbers


def test_every_test_that_the_table_of_failures_names_is_one_that_the_quick_suite_runs(
    request: pytest.FixtureRequest,
) -> None:
    named, files = named_tests(), files_of_tests()
    assert named - files.keys() == set()
    wanted = {f"tests/{files[name]}::{name}" for name in named}
    is_quick = request.config.option.markexpr == "not slow"
    runs = {item.nodeid.partition("[")[0] for item in request.session.items} if is_quick else set[str]()
    if not wanted <= runs:  # this is a run of a part, or of another suite
        paths = sorted({str(TESTS / files[name]) for name in named})
        words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *paths]
        collected = subprocess.run(words, capture_output=True, text=True, cwd=TESTS.parent).stdout
        runs = {line.partition("[")[0] for line in collected.splitlines()}
    assert wanted - runs == set()


def test_no_test_that_the_table_of_failures_names_is_skipped() -> None:
    files = files_of_tests()
    for name in sorted(named_tests()):
        before, _, _ = (TESTS / files[name]).read_text(encoding="utf-8").partition(f"def {name}(")
        above = before.rpartition("\n\n")[2]
        assert "skip" not in above, name
        assert "xfail" not in above, name


def test_every_failure_has_a_row_and_those_of_peers_too() -> None:
    users = [f"F{number}" for number in range(1, 114)]
    assert [number for number in numbers() if not number.endswith("b")] == [
        *users,
        *(f"N{number}" for number in range(1, 29)),
    ]
    assert {"F38b", "F95b"} <= set(numbers())


def test_every_test_that_the_page_of_threats_names_exists() -> None:
    page = (TESTS.parent / "docs/threats.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(test_\w+)`", page)) - files_of_tests().keys() == set()
