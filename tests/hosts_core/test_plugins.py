"""What `readcache init` writes for a host that loads plugins, and what `doctor` says of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError
from readcache.hosts import find_host
from readcache.hosts.checks import check_host
from readcache.hosts.host import Host, OwnFile, Where
from readcache.hosts.settings_files.switch import Switch

WHERE = Where("/p", "/home/me", False, (sys.executable, "-m", "readcache"), "on", "max")
MOVED = {"XDG_CONFIG_HOME": "/etc/mine", "PI_CODING_AGENT_DIR": "/etc/mine/agent"}
# By host: its file in a project, below the user's home, and where the environment moves that.
PLACES = {
    "opencode": (".opencode/plugin", ".config/opencode/plugin", "/etc/mine/opencode/plugin"),
    "kilo": (".kilo/plugin", ".config/kilo/plugin", "/etc/mine/kilo/plugin"),
    "pi": (".pi/extensions", ".pi/agent/extensions", "/etc/mine/agent/extensions"),
}
EXPORTS = {
    **dict.fromkeys(("opencode", "kilo"), "export const Readcache = async ({ client, directory }) => {"),
    "pi": "export default function (pi) {",
}


@pytest.fixture(params=PLACES)
def host(request: pytest.FixtureRequest) -> Host:
    found: Host = find_host(request.param)
    return found


def written(host: Host, where: Where) -> OwnFile:
    (change,) = host.changes(where)
    assert isinstance(change, OwnFile)
    return change


def test_the_plugin_is_one_file_of_the_project_or_of_the_user(host: Host) -> None:
    project, user, moved = PLACES[host.name]
    of_user = WHERE._replace(is_user=True)
    assert written(host, WHERE).path == f"/p/{project}/readcache.js"
    assert written(host, of_user).path == f"/home/me/{user}/readcache.js"
    assert written(host, of_user._replace(environment=MOVED)).path == f"{moved}/readcache.js"


def test_it_says_which_host_program_mode_and_policy(host: Host) -> None:
    odd = WHERE._replace(program=('/a b/"c"\\1/readcache',), mode="advise")
    (line,) = re.findall(r"^const SETTINGS = .*?\((.*)\)$", written(host, odd).text, re.MULTILINE)
    said = {"program": list(odd.program), "mode": "advise", "options": ["--policy", "max"]}
    assert json.loads(line) == {"host": host.name, **said}


def test_nothing_but_the_plugin_is_exported(host: Host) -> None:
    """opencode calls whatever a plugin's file exports."""
    assert re.findall(r"^export .*", written(host, WHERE).text, re.MULTILINE) == [EXPORTS[host.name]]


def test_doctor_says_whether_it_is_in_force(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))  # for the program that it starts
    where, memory = WHERE._replace(root=str(tmp_path)), str(tmp_path / "memory")
    with pytest.raises(ReadcacheError, match=f"not switched on: run `readcache init {host.name} --project`"):
        check_host(host, where, memory)
    switch = Switch(host, where, memory)
    switch.write(switch.plan_on())
    chosen = where._replace(mode="advise", policy="default")  # by this process; what was chosen then is remembered
    assert check_host(host, chosen, memory).startswith(f"on, policy max (--project): {host.name} loads ")
    path = Path(written(host, where).path)
    path.write_text(path.read_text() + "//")
    with pytest.raises(ReadcacheError, match="of another version, or were edited"):
        check_host(host, where, memory)
    gone = Switch(host, where._replace(program=("/no/such/program",)), memory)
    gone.write(gone.plan_on())
    with pytest.raises(ReadcacheError, match="/no/such/program does not run"):
        check_host(host, gone.where, memory)
    off = Switch(host, where._replace(mode="off"), memory)
    off.write(off.plan_on())
    assert check_host(host, where, memory) == "off, policy max (--project)"


def test_the_host_tells_what_leaves_so_that_it_is_on(host: Host) -> None:
    assert (host.mode, host.hook) == ("on", None)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_pi_never_hears_of_an_error_of_ours(tmp_path: Path) -> None:
    """Events of a shape that no version has had: the host's own result and list stay."""
    (tmp_path / "plugin.mjs").write_text(written(find_host("pi"), WHERE).text, encoding="utf-8")
    (tmp_path / "pi.mjs").write_text(
        'import extension from "./plugin.mjs"\n'
        "const heard = {}\n"
        "extension({ on: (name, answer) => (heard[name] = answer) })\n"
        'const ctx = { cwd: "/p", sessionManager: { getSessionId: () => "s" } }\n'
        'const result = await heard.tool_result({ toolName: "edit", toolCallId: "c" }, ctx)\n'
        "const request = await heard.context({ messages: [null] }, ctx)\n"
        "console.log(result, request)\n"
    )
    ran = subprocess.run(["node", "pi.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("undefined undefined\n", "")
