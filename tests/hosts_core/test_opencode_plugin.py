"""What `readcache init opencode` writes, and what `doctor` says of it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError
from readcache.hosts import find_host
from readcache.hosts.host import Host, OwnFile, Where

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
    assert json.loads(line) == {"program": list(odd.program), "mode": "advise", "policy": "max"}


def test_nothing_but_the_plugin_is_exported() -> None:
    """opencode calls whatever a plugin's file exports."""
    assert re.findall(r"^export .*", written(WHERE).text, re.MULTILINE) == [
        "export const Readcache = async ({ client, directory }) => {"
    ]


def test_doctor_says_whether_it_is_in_force(tmp_path: Path) -> None:
    where = WHERE._replace(root=str(tmp_path))
    assert HOST.in_force is not None
    with pytest.raises(ReadcacheError, match="run `readcache init opencode`"):
        HOST.in_force(where)
    change = written(where)
    path = Path(change.path)
    path.parent.mkdir(parents=True)
    path.write_text(change.text)
    assert "this version's plugin, on" in HOST.in_force(where)
    assert HOST.in_force(where._replace(policy="default", program=("/other",)))  # what was chosen is no other version
    for wrong, what in (
        (change.text + "//", "not this version's"),
        (written(where._replace(mode="off")).text, "says that readcache is off"),
        (written(where._replace(program=("/no/such/program",))).text, "/no/such/program, which is not there"),
    ):
        path.write_text(wrong)
        with pytest.raises(ReadcacheError, match=what):
            HOST.in_force(where)


def test_the_host_tells_what_leaves_so_that_it_is_on() -> None:
    assert (HOST.name, HOST.mode, HOST.hook) == ("opencode", "on", None)
