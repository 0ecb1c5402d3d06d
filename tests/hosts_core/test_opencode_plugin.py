"""What `readcache init opencode` writes, and what `doctor` says of it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError
from readcache.hosts import find_host
from readcache.hosts.checks import check_host
from readcache.hosts.host import Host, OwnFile, Where
from readcache.hosts.settings_files.switch import Switch

HOST: Host = find_host("opencode")
WHERE = Where("/p", "/home/me", False, (sys.executable, "-m", "readcache"), "on", "max")


def written(where: Where) -> OwnFile:
    (change,) = HOST.changes(where)
    assert isinstance(change, OwnFile)
    return change


def test_the_plugin_is_one_file_of_the_project_or_of_the_user() -> None:
    assert written(WHERE).path == "/p/.opencode/plugin/readcache.js"
    user = WHERE._replace(is_user=True)
    assert written(user).path == "/home/me/.config/opencode/plugin/readcache.js"
    moved = user._replace(environment={"XDG_CONFIG_HOME": "/etc/mine"})
    assert written(moved).path == "/etc/mine/opencode/plugin/readcache.js"


def test_it_says_which_program_mode_and_policy() -> None:
    odd = WHERE._replace(program=('/a b/"c"\\1/readcache',), mode="advise")
    (line,) = re.findall(r"^const SETTINGS = (.*)$", written(odd).text, re.MULTILINE)
    assert json.loads(line) == {"program": list(odd.program), "mode": "advise", "options": ["--policy", "max"]}


def test_nothing_but_the_plugin_is_exported() -> None:
    """opencode calls whatever a plugin's file exports."""
    assert re.findall(r"^export .*", written(WHERE).text, re.MULTILINE) == [
        "export const Readcache = async ({ client, directory }) => {"
    ]


def test_doctor_says_whether_it_is_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))  # for the program that it starts
    where, memory = WHERE._replace(root=str(tmp_path)), str(tmp_path / "memory")
    with pytest.raises(ReadcacheError, match="not switched on: run `readcache init opencode --project`"):
        check_host(HOST, where, memory)
    switch = Switch(HOST, where, memory)
    switch.write(switch.plan_on())
    chosen = where._replace(mode="advise", policy="default")  # by this process; what was chosen then is remembered
    assert check_host(HOST, chosen, memory).startswith("on, policy max (--project): opencode loads ")
    path = Path(written(where).path)
    path.write_text(path.read_text() + "//")
    with pytest.raises(ReadcacheError, match="of another version, or were edited"):
        check_host(HOST, where, memory)
    gone = Switch(HOST, where._replace(program=("/no/such/program",)), memory)
    gone.write(gone.plan_on())
    with pytest.raises(ReadcacheError, match="/no/such/program does not run"):
        check_host(HOST, gone.where, memory)
    off = Switch(HOST, where._replace(mode="off"), memory)
    off.write(off.plan_on())
    assert check_host(HOST, where, memory) == "off, policy max (--project)"


def test_the_host_tells_what_leaves_so_that_it_is_on() -> None:
    assert (HOST.name, HOST.mode, HOST.hook) == ("opencode", "on", None)
