"""Tools as the users of a framework write them: a shell, a reader with numbers, an editor."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from readcache import Mode, Policy, UsageError
from readcache.testing.hosts import Bash, Edit, Read, ToolUse

# What no adapter takes, and what none takes from the environment.
MEANINGLESS: list[dict[str, Any]] = [
    {"policy": "maxx"},
    {"store": "reddis://localhost"},
    {"restore": "much"},
    {"on_reply": "print"},
    {"tools": {"bash": "bsh"}},
]
MISSPELT = {"READCACHE": "onn", "READCACHE_POLICY": "maxx", "READCACHE_STORE": "reddis://localhost"}


def check_settings(
    make: Callable[..., Any],
    keeps: Callable[[Any], tuple[Policy, object]],
    monkeypatch: pytest.MonkeyPatch,
    directory: Path,
    *,
    lacks: Sequence[str] = (),
    error: type[Exception] = UsageError,
) -> None:
    """What is true of each adapter in Python. `make`: makes it, with settings by name; `keeps`: its policy and its
    store; `lacks`: names of settings that it has not; `error`: what it raises for what means nothing."""
    for wrong in MEANINGLESS:
        if not wrong.keys() & {*lacks}:
            with pytest.raises(error):
                make(**wrong)
    for name, value in MISSPELT.items():
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            with pytest.raises(error):
                make()
    monkeypatch.setenv("READCACHE_POLICY", "max")
    monkeypatch.setenv("READCACHE_STORE", named := str(directory / "named.db"))
    assert keeps(make()) == (Policy.named("max"), named)
    assert keeps(make(policy="delta", store=f"{named}2")) == (Policy.named("delta"), f"{named}2")
    monkeypatch.setenv("READCACHE", "off")
    assert keeps(make())[0].mode is Mode.OFF


def user_tools(root: Path) -> list[Callable[..., str]]:
    """The three of them, for the project at `root`."""

    def bash(command: str, timeout: float = 60.0) -> str:
        """Runs a command in the project."""
        try:
            ran = subprocess.run(
                ["bash", "-c", command], cwd=root, timeout=timeout, text=True, stdout=-1, stderr=-2, check=False
            )
        except subprocess.TimeoutExpired:
            return "Error: the command ran out of time."
        return ran.stdout

    def read_file(path: str, start_line: int = 1, end_line: int = 0) -> str:
        """Reads lines of a file."""
        try:
            lines = (root / path).read_text().splitlines()[start_line - 1 : end_line or None]
        except OSError:
            return f"Error: cannot read {path}"
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start_line))

    def edit_file(path: str, old: str, new: str) -> str:
        """Changes a text in a file."""
        (root / path).write_text((root / path).read_text().replace(old, new, 1))
        return "edited"

    return [bash, read_file, edit_file]


def user_call(use: ToolUse) -> tuple[str, dict[str, Any]]:
    """(tool, arguments) of a call of one of them."""
    if isinstance(use, Bash):
        return "bash", {"command": use.command} | ({"timeout": use.timeout} if use.timeout else {})
    if isinstance(use, Read):
        return "read_file", {"path": use.path, "start_line": use.start} | ({"end_line": use.end} if use.end else {})
    assert isinstance(use, Edit)
    return "edit_file", {"path": use.path, "old": use.old, "new": use.new}
