"""The files for developers name only commands, paths and settings that exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.docs.tables import TOP

PAGES = ("CONTRIBUTING.md", "AGENTS.md", "README.md")
FORMS = sorted((TOP / ".github/ISSUE_TEMPLATE").glob("*.yml"))
TARGETS = {"setup", "test", "test-core", "lint", "docs", "hosts", "bench", "ci"}


def printed_by_make(directory: Path, *words: str) -> str:
    """Return the output of make. It must not know that it runs inside another make."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", *words], cwd=directory, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def text_of(name: str) -> str:
    return (TOP / name).read_text(encoding="utf-8")


def test_each_target_of_make_is_described_and_each_described_one_exists() -> None:
    assert set(re.findall(r"^([a-z-]+):.*## ", text_of("Makefile"), re.MULTILINE)) == TARGETS | {"help"}
    assert set(re.findall(r"`make ([a-z-]+)`", text_of("CONTRIBUTING.md"))) == TARGETS
    assert set(re.findall(r"`make ([a-z-]+)`", text_of("AGENTS.md"))) <= TARGETS


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_a_target_would_run_exists(target: str, tmp_path: Path) -> None:
    shutil.copy(TOP / "Makefile", tmp_path)  # here .venv is missing, so each target but `ci` makes it
    printed = printed_by_make(tmp_path, "-n", target)
    assert (".venv/bin/pip install -q -e '.[dev]'" in printed) == (target != "ci")
    paths = re.findall(r"(?<=\s)(tests/\S+|\.ci/\S+)", f" {printed}")
    assert [path for path in paths if not (TOP / path).exists()] == []


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_without_a_target_lists_the_targets() -> None:
    assert {line.partition(": ")[0] for line in printed_by_make(TOP).splitlines()} == TARGETS | {"help"}


@pytest.mark.parametrize("name", PAGES)
def test_each_path_in_a_command_exists(name: str) -> None:
    commands = re.findall(r"(?:\.venv/bin/)?python (?:-m pytest )?([^`\n]+)", text_of(name))
    paths = [word for command in commands for word in command.split() if word.startswith(("tests/", "examples/"))]
    assert [path for path in paths if not (TOP / path).exists()] == []


def test_one_command_sets_up_in_the_same_way_everywhere() -> None:
    command = "-m venv .venv && .venv/bin/pip install -q -e '.[dev]'"
    assert f"python3 {command}" in text_of("CONTRIBUTING.md")
    assert command.partition(" && ")[2] in text_of("Makefile")


def test_the_page_for_coding_agents_is_short() -> None:
    assert len(text_of("AGENTS.md").splitlines()) <= 30


def test_github_runs_what_developers_run() -> None:
    commands = re.findall(r"^ +- run: (.*)$", text_of(".github/workflows/ci.yml"), re.MULTILINE)
    assert commands == [".ci/run"]
    assert (TOP / ".ci/run").stat().st_mode & 0o100


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_asks_for_what_readcache_says(path: Path) -> None:
    labels = re.findall(r"^ +label: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"Output of `readcache doctor`", "Output of `readcache explain FILE`"} <= set(labels)


def test_the_source_archive_holds_nothing_unexpected(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=TOP, capture_output=True, check=True)
    (made,) = tmp_path.iterdir()
    with tarfile.open(made) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    folders = {"readcache", "shims", "docs", "tests", "examples"}
    files = {f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")}
    files |= {"LICENSE", "PKG-INFO", "pyproject.toml", ".gitignore"}
    assert {name.partition("/")[0] for name in names} == folders | files
    assert not [name for name in names if re.search(r"__pycache__|\.pyc$|\.venv|\.so$|^shims/bin/", name)]
