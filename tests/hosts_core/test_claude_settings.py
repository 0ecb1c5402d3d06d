"""What `readcache init claude-code` writes, and whether that is in force."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError
from readcache.hosts.claude_code import HOST
from readcache.hosts.claude_code.settings import changes, in_force
from readcache.hosts.host import Where


def where(tmp_path: Path, *, is_user: bool = False, program: str = sys.executable, mode: str = "on") -> Where:
    """A place below the directory."""
    (tmp_path / "home/.claude").mkdir(parents=True, exist_ok=True)
    return Where(str(tmp_path / "p"), str(tmp_path / "home"), is_user, (program, "-m", "readcache"), mode, "default")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package `mcp`, as far as it is looked for."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/mcp.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "packages")


def test_without_the_mcp_package_each_hook_is_a_process(tmp_path: Path) -> None:
    made = changes(where(tmp_path, mode="advise"))
    assert {entry.path for entry in made} == {str(tmp_path / "p/.claude/settings.json")}
    assert {entry.keys[1] for entry in made} == {"PostToolUse", "PostToolUseFailure", "SessionStart"}
    assert all(f"{sys.executable} -m readcache hook claude-code --advise" in json.dumps(entry.value) for entry in made)


def test_for_all_of_a_users_projects_it_stands_in_the_users_settings(tmp_path: Path) -> None:
    made = changes(where(tmp_path, is_user=True))
    assert {entry.path for entry in made} == {str(tmp_path / "home/.claude/settings.json")}


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("is_user", [False, True])
def test_with_the_mcp_package_the_hooks_call_a_server_that_the_model_does_not_see(
    tmp_path: Path, is_user: bool
) -> None:
    made = {entry.keys: entry for entry in changes(where(tmp_path, is_user=is_user, mode="advise"))}
    server = made["mcpServers", "readcache"]
    assert server.path == str(tmp_path / ("home/.claude.json" if is_user else "p/.mcp.json"))
    assert "READCACHE" in json.dumps(server.value)
    assert made["permissions", "deny", "+"].value == "mcp__readcache"
    assert "mcp_tool" in json.dumps(made["hooks", "PostToolBatch", "+"].value)


def test_it_is_in_force_when_hooks_run_and_the_program_is_there(tmp_path: Path) -> None:
    assert in_force(where(tmp_path)) == "Claude Code runs the hooks"


def test_it_is_not_in_force_when_all_hooks_are_off(tmp_path: Path) -> None:
    place = where(tmp_path)
    (tmp_path / "home/.claude/settings.json").write_text('{"disableAllHooks": true}')
    with pytest.raises(ReadcacheError, match="disableAllHooks"):
        in_force(place)


def test_it_is_not_in_force_when_the_program_is_gone(tmp_path: Path) -> None:
    with pytest.raises(ReadcacheError, match="not there"):
        in_force(where(tmp_path, program=str(tmp_path / "gone")))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"disableAllHooks": false}'])
def test_settings_that_cannot_be_read_are_none(tmp_path: Path, text: str) -> None:
    place = where(tmp_path)
    (tmp_path / "home/.claude/settings.json").write_text(text)
    assert in_force(place)


def test_it_is_on_unless_it_is_asked_for_otherwise() -> None:
    assert HOST.mode == "on"
    assert HOST.why
