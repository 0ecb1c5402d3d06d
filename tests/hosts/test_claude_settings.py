"""What `readcache init claude-code` writes, and whether that is in force."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError
from readcache.hosts.claude_code.adapter import HOST
from readcache.hosts.claude_code.settings import changes, in_force
from readcache.hosts.host import Entry, InstallTarget


def target(tmp_path: Path, *, is_user: bool = False, program: str = sys.executable, mode: str = "on") -> InstallTarget:
    """A place below the directory."""
    (tmp_path / "home/.claude").mkdir(parents=True, exist_ok=True)
    return InstallTarget(
        str(tmp_path / "p"), str(tmp_path / "home"), is_user, (program, "-m", "readcache"), mode, "default"
    )


def test_each_hook_is_a_process(tmp_path: Path) -> None:
    made = [entry for entry in changes(target(tmp_path, mode="advise")) if isinstance(entry, Entry)]
    assert {entry.path for entry in made} == {str(tmp_path / "p/.claude/settings.json")}
    assert {entry.keys[1] for entry in made} == {"PostToolUse", "PostToolUseFailure", "SessionStart", "allow"}
    made = [entry for entry in made if entry.keys[1] != "allow"]
    assert all(f"{sys.executable} -m readcache hook claude-code --advise" in json.dumps(entry.value) for entry in made)


def test_for_all_of_a_users_projects_it_stands_in_the_users_settings(tmp_path: Path) -> None:
    made = changes(target(tmp_path, is_user=True))
    assert {entry.path for entry in made} == {str(tmp_path / "home/.claude/settings.json")}


def test_it_is_in_force_when_hooks_run(tmp_path: Path) -> None:
    assert in_force(target(tmp_path)) == "Claude Code runs the hooks (no claude on PATH tells its version)"


def test_it_is_not_in_force_when_all_hooks_are_off(tmp_path: Path) -> None:
    chosen = target(tmp_path)
    (tmp_path / "home/.claude/settings.json").write_text('{"disableAllHooks": true}')
    with pytest.raises(ReadcacheError, match="disableAllHooks"):
        in_force(chosen)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"disableAllHooks": false}'])
def test_settings_that_cannot_be_read_are_none(tmp_path: Path, text: str) -> None:
    chosen = target(tmp_path)
    (tmp_path / "home/.claude/settings.json").write_text(text)
    assert in_force(chosen)


def test_it_is_on_unless_it_is_asked_for_otherwise() -> None:
    assert HOST.mode == "on"
    assert HOST.why


def test_init_says_that_an_old_version_only_advises(tmp_path: Path) -> None:
    claude = tmp_path / "bin/claude"
    claude.parent.mkdir()
    claude.write_text("#!/bin/sh\necho '2.1.299 (Claude Code)'\n")
    claude.chmod(0o755)
    (tmp_path / "home").mkdir()
    environ = {"PATH": f"{claude.parent}{os.pathsep}/bin", "HOME": str(tmp_path / "home")}

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "readcache", *words]
        return subprocess.run(command, cwd=tmp_path, env=environ, check=False, capture_output=True, text=True)

    made = said("init", "claude-code").stdout
    why = "Claude Code 2.1.299 is too old for omitting: it only advises; update Claude Code"
    assert f"claude-code: advise ({why})" in made
    assert "hook claude-code --advise" in made
    checked = said("doctor", "--host", "claude-code").stdout
    assert "advise (--user): Claude Code runs the hooks" in checked
    assert why in checked
