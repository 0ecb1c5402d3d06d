"""Limits on the habits that make English hard to read. Lower a limit when a change removes findings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.tables import TOP


def findings(*words: str) -> tuple[int, str]:
    """Return the exit status of the lint and its output."""
    command = [sys.executable, "tests/docs/prose.py", *words]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("most", "paths"),
    [
        (0, ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "docs", "examples")),
        (40, ("--strings", "readcache/cli", "readcache/report", "readcache/hosts")),
    ],
)
def test_what_people_read_has_at_most_this_many_findings(most: int, paths: tuple[str, ...]) -> None:
    status, output = findings("--max", str(most), *paths)
    assert status == 0, output


def test_the_lint_finds_habits_in_pages_and_in_strings(tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("The lines stand in the place of others.\n")
    module.write_text('"""What a module is about, as far as is known."""\nHELP = "say where the lines stand"\n')
    assert [findings("--max", "1", str(path))[0] for path in (page, module)] == [1, 1]
    status, output = findings("--max", "0", "--strings", str(module))
    assert (status, output.count("module.py:")) == (1, 1)
    assert "module.py:2: stand" in output
