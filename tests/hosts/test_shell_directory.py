"""Where a shell that stays is."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache.hosts.tool_results import ShellDirectory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src/inner").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("commands", "where"),
    [
        (["ls"], ""),
        (["cd src"], "src"),
        (["cd src && ls"], "src"),
        (["cd src; ls | head", "cd inner"], "src/inner"),
        (["cd src", "cd .."], ""),
        (["echo cdrom"], ""),
    ],
)
def test_a_directory_that_is_there_is_followed(root: Path, commands: list[str], where: str) -> None:
    shell = ShellDirectory(str(root))
    for command in commands:
        shell.follow(command)
    assert Path(shell.now) == root / where


@pytest.mark.parametrize(
    "command",
    [
        *("cd nowhere", "cd $HOME", "cd", "cd -", "cd src && cd inner", "ls; cd src", "pushd src", ". ./env"),
        *("source env", "(true) && cd src", "cd src | cat", "exit 1"),
    ],
)
def test_a_shell_that_cannot_be_followed_is_nowhere(root: Path, command: str) -> None:
    shell = ShellDirectory(str(root))
    shell.follow(command)
    first = shell.now
    assert not Path(first).exists()
    shell.follow(command)
    assert shell.now != first, "nor is it where it was before"
    shell.follow(f"cd {root}/src")
    assert Path(shell.now) == root / "src"


def test_a_new_shell_begins_in_the_root(root: Path) -> None:
    shell = ShellDirectory(str(root))
    shell.follow("cd src")
    shell.follow("anything", restarted=True)
    assert Path(shell.now) == root
