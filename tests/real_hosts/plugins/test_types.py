"""The plugins are of the types that their hosts' packages declare."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from readcache.hosts import find_host
from readcache.hosts.host import InstallTarget, OwnFile

STRICT = ["--allowJs", "--checkJs", "--noEmit", "--strict", "--skipLibCheck"]
FOR_NODE = ["--target", "es2023", "--module", "nodenext", "--types", "node"]


@pytest.mark.parametrize("name", ["opencode", "kilo", "pi"])
def test_tsc_has_nothing_against_a_plugin(name: str, tmp_path: Path) -> None:
    (plugin,) = find_host(name).changes(InstallTarget("/p", "/home/me", False, ("readcache",), "on", "max"))
    assert isinstance(plugin, OwnFile)
    (tmp_path / "node_modules").symlink_to(Path(os.environ["READCACHE_TEST_NPM"]) / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "plugin.js").write_text(plugin.text, encoding="utf-8")
    command = ["tsc", *STRICT, *FOR_NODE, "plugin.js"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout == ""
