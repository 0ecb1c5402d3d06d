"""Settings that `readcache init` of commit 1351b17 wrote, and what it remembers of them, are understood."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from readcache.cli.main import main

# Each with the file as that commit left it, of a plugin only the first lines, and with its record in the state
# directory. "{top}" is a directory with the home and a project.
WRITTEN = (Path(__file__).parent / "data/settings-1351b17.json").read_text(encoding="utf-8")
HOSTS = sorted({case["host"] for case in json.loads(WRITTEN)})


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, bool], dict[str, Any]]:
    """By host, and whether the settings are the user's."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    found = json.loads(WRITTEN.replace("{top}", str(tmp_path)))
    for case in found:
        file = tmp_path / case["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(case["text"])
        case["record"]["after"] = hashlib.sha256(case["text"].encode()).hexdigest()
        place = hashlib.sha256(str(file).encode()).hexdigest()[:16]
        memory = tmp_path / f"state/readcache/hosts/{case['host']}-{place}.json"
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(json.dumps(case["record"]))
    return {(case["host"], case["file"].startswith("home")): case for case in found}


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("is_user", [False, True])
@pytest.mark.parametrize("host", HOSTS)
def test_what_was_switched_on_is_switched_off(
    cases: dict[tuple[str, bool], dict[str, Any]], tmp_path: Path, host: str, is_user: bool, is_edited: bool
) -> None:
    case = cases[host, is_user]
    file, before = tmp_path / case["file"], case["record"]["original"]
    if is_edited and file.suffix == ".json":
        file.write_text(json.dumps({**json.loads(file.read_text()), "more": 1}))
        before = json.dumps({**json.loads(before or "{}"), "more": 1})
    assert main(["uninit", host, "--user" if is_user else "--project"]) == 0
    assert (json.loads(file.read_text()) if file.exists() else None) == (None if before is None else json.loads(before))


@pytest.mark.usefixtures("cases")
def test_all_of_it_is_known_and_taken_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["uninit", "--all", "--yes"]) == 0
    said = capfd.readouterr().out
    assert all(said.count(f"host    {host}, ") == 2 for host in HOSTS)
    assert [name for name in os.listdir(tmp_path / "project") if not name.startswith(".")] == []
    assert json.loads((tmp_path / "home/.claude/settings.json").read_text()) == {"theme": "dark"}
