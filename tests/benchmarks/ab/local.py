"""Local instances: a small repository in the instance itself, and a test command that says whether it is solved."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COMMIT = "git init -q . && git add . && git -c user.name=a -c user.email=a@b.c commit -qm begin"
TEST_SECONDS = 120  # more than any test of a repository that fits into a JSON line should take


def make_repository(instance: Mapping[str, Any], root: Path) -> Path:
    """The repository as the agent finds it, without the tests."""
    _write(instance["files"], root)
    subprocess.run(COMMIT, shell=True, cwd=root, check=True)
    return root.resolve()


def is_solved(instance: Mapping[str, Any], patch: str) -> bool:
    """True when the patch applies to a fresh repository and the tests, which the agent never saw, pass."""
    if not patch.strip():
        return False
    with tempfile.TemporaryDirectory() as directory:
        root = make_repository(instance, Path(directory) / "testbed")
        applied = subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=root, capture_output=True)
        if applied.returncode:
            return False
        _write(instance["test_files"], root)
        command = ["bash", "-c", instance["test_command"]]
        try:
            return not subprocess.run(command, cwd=root, capture_output=True, timeout=TEST_SECONDS).returncode
        except subprocess.TimeoutExpired:
            return False


def _write(files: Mapping[str, str], root: Path) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
