"""What `readcache init` writes for a host that loads plugins, and what `doctor` says of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError, Session
from readcache.core.model.events import Missed
from readcache.core.model.text import session_tag
from readcache.hosts import find_host
from readcache.hosts.checks import check_host
from readcache.hosts.host import Host, InstallTarget, OwnFile
from readcache.hosts.settings_files.switch import Switch
from tests.helpers.files import wait_until

TARGET = InstallTarget("/p", "/home/me", False, (sys.executable, "-m", "readcache"), "on", "max")
MOVED = {"XDG_CONFIG_HOME": "/etc/mine", "PI_CODING_AGENT_DIR": "/etc/mine/agent"}
# By host: its file in a project, below the user's home, and where the environment moves that.
DIRECTORIES = {
    "opencode": (".opencode/plugin", ".config/opencode/plugin", "/etc/mine/opencode/plugin"),
    "kilo": (".kilo/plugin", ".config/kilo/plugin", "/etc/mine/kilo/plugin"),
    "pi": (".pi/extensions", ".pi/agent/extensions", "/etc/mine/agent/extensions"),
}
EXPORTS = {
    **dict.fromkeys(("opencode", "kilo"), "export const Readcache = async ({ client, directory }) => {"),
    "pi": "export default function (pi) {",
}


@pytest.fixture(params=DIRECTORIES)
def host(request: pytest.FixtureRequest) -> Host:
    found: Host = find_host(request.param)
    return found


def written(host: Host, target: InstallTarget) -> OwnFile:
    (change,) = host.changes(target)
    assert isinstance(change, OwnFile)
    return change


def test_the_plugin_is_one_file_of_the_project_or_of_the_user(host: Host) -> None:
    project, user, moved = DIRECTORIES[host.name]
    of_user = TARGET._replace(is_user=True)
    assert written(host, TARGET).path == f"/p/{project}/readcache.js"
    assert written(host, of_user).path == f"/home/me/{user}/readcache.js"
    assert written(host, of_user._replace(environment=MOVED)).path == f"{moved}/readcache.js"


def test_it_says_which_host_program_mode_and_policy(host: Host) -> None:
    odd = TARGET._replace(program=('/a b/"c"\\1/readcache',), mode="advise")
    (line,) = re.findall(r"^const SETTINGS = .*?\((.*)\)$", written(host, odd).text, re.MULTILINE)
    said = {"program": list(odd.program), "mode": "advise", "options": ["--policy", "max"]}
    assert json.loads(line) == {"host": host.name, **said}


def test_nothing_but_the_plugin_is_exported(host: Host) -> None:
    """opencode calls whatever a plugin's file exports."""
    assert re.findall(r"^export .*", written(host, TARGET).text, re.MULTILINE) == [EXPORTS[host.name]]


def test_doctor_says_whether_it_is_in_force(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))  # for the program that it starts
    target, memory = TARGET._replace(root=str(tmp_path)), str(tmp_path / "memory")
    with pytest.raises(ReadcacheError, match=f"not switched on: run `readcache init {host.name} --project`"):
        check_host(host, target, memory)
    switch = Switch(host, target, memory)
    switch.write(switch.plan_on())
    chosen = target._replace(mode="advise", policy="default")  # by this process; what was chosen then is remembered
    assert check_host(host, chosen, memory).startswith(f"on, policy max (--project): {host.name} loads ")
    path = Path(written(host, target).path)
    path.write_text(path.read_text() + "//")
    with pytest.raises(ReadcacheError, match="of another version, or were edited"):
        check_host(host, target, memory)
    gone = Switch(host, target._replace(program=("/no/such/program",)), memory)
    gone.write(gone.plan_on())
    with pytest.raises(ReadcacheError, match="/no/such/program does not run"):
        check_host(host, gone.target, memory)
    off = Switch(host, target._replace(mode="off"), memory)
    off.write(off.plan_on())
    assert check_host(host, target, memory) == "off, policy max (--project)"


def test_the_host_tells_what_leaves_so_that_it_is_on(host: Host) -> None:
    assert (host.mode, host.hook) == ("on", None)


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
NO_EVENT = """
const result = await heard.tool_result({ toolName: "edit", toolCallId: "c" }, ctx)
const request = await heard.context({ messages: [null] }, ctx)
console.log(result, request)
"""
# Two reads of a file, and the request that holds them; what it has as the second result is printed.
TWO_READS = """
const text = Array.from({ length: 60 }, (_, n) => `line ${n} of a file that is read twice\\n`).join("")
const messages = [{ role: "user", content: "go on", timestamp: 1 }]
async function read(toolCallId) {
  const event = { toolName: "bash", input: { command: "cat f" }, content: [{ type: "text", text }], isError: false }
  const changed = await heard.tool_result({ ...event, toolCallId }, ctx)
  const call = { type: "toolCall", id: toolCallId, name: "bash", arguments: event.input }
  messages.push({ role: "assistant", content: [call] }, { role: "toolResult", toolCallId, ...event, ...changed })
}
const sent = async () => {
  const request = (await heard.context({ messages }, ctx)) ?? { messages }
  console.log(request.messages.at(-1).content[0].text === text ? "real" : "shortened")
}
const server = () => Number(readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").split(" ")[0])
await read("c1")
console.log(server())
await sent()
await read("c2")
"""
# A request while the server is stopped, which answers a later one.
LATE = """
const client = globalThis[Symbol.for("readcache.pi")].get("s").server
client.deadline = 100
process.kill(server(), "SIGSTOP")
while (!readFileSync(`/proc/${server()}/stat`, "utf8").includes(") T ")) {}
await sent()
process.kill(server(), "SIGCONT")
client.deadline = 60_000
"""


def drive_pi(directory: Path, script: str) -> list[str]:
    """The lines that a script prints that hears pi's events in the place of pi, when its server has ended, too. Our
    state and store are in `directory`."""
    text = written(find_host("pi"), TARGET).text.replace("deadline = 2000", "deadline = 60_000")  # no clock decides
    (directory / "plugin.mjs").write_text(text, encoding="utf-8")
    (directory / "pi.mjs").write_text(
        'import { readFileSync } from "node:fs"\n'
        'import extension from "./plugin.mjs"\n'
        "const heard = {}\n"
        "extension({ on: (name, answer) => (heard[name] = answer) })\n"
        f'const ctx = {{ cwd: "{directory}", sessionManager: {{ getSessionId: () => "s" }} }}\n'
        f"{script}\nawait heard.session_shutdown()\n"
    )
    state = {"XDG_STATE_HOME": str(directory), "READCACHE_STORE": str(directory / "store.db")}
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), **state}
    ran = subprocess.run(["node", "pi.mjs"], cwd=directory, capture_output=True, text=True, check=False, env=env)
    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    if lines[0].isdecimal():
        wait_until(lambda: not is_running(int(lines[0])))
        del lines[0]
    return lines


def is_running(process: int) -> bool:
    """Check whether there is such a process."""
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@needs_node
def test_pi_never_hears_of_an_error_of_ours(tmp_path: Path) -> None:
    """Events of a shape that no version has had: the host's own result and list stay."""
    assert drive_pi(tmp_path, NO_EVENT) == ["undefined undefined"]


@needs_node
def test_an_error_of_the_plugin_is_counted_and_noted_for_doctor(tmp_path: Path) -> None:
    assert drive_pi(tmp_path, f"{TWO_READS}await sent()\n{NO_EVENT}") == ["real", "shortened", "undefined undefined"]
    with Session(tmp_path, session_id="s", store=str(tmp_path / "store.db")) as session:
        (missed,) = (record.event for record in session.events() if isinstance(record.event, Missed))
    assert (missed.count, missed.why[:10]) == (1, "TypeError:")
    (noted,) = (tmp_path / "readcache/failures.log").read_text().splitlines()
    assert "s: plugin of pi: TypeError: " in noted


@needs_node
@pytest.mark.parametrize("is_late", [False, True])
def test_a_marker_counts_once_a_request_held_it(tmp_path: Path, is_late: bool) -> None:
    """If the server answers the list too late, the real one is sent, then and later."""
    script = TWO_READS + (LATE if is_late else "") + "await sent()\n"
    assert drive_pi(tmp_path, script) == (["real", "real", "real"] if is_late else ["real", "shortened"])
    with Session(tmp_path, session_id="s", store=str(tmp_path / "store.db")) as session:
        assert ("covered" in session.stats(), "not_sent" in session.stats()) == (not is_late, is_late)


@needs_node
def test_pi_is_sent_what_was_recalled(tmp_path: Path) -> None:
    tag = session_tag("s")
    (tmp_path / "f").touch()
    recall = f"""
const printed = [{{ type: "text", text: "bash: readcache: command not found\\n\\nCommand exited with code 127" }}]
const input = {{ command: "readcache recall {tag}.1" }}
const event = {{ toolName: "bash", input, content: printed, isError: true, toolCallId: "c3" }}
const changed = await heard.tool_result(event, ctx)
messages.push({{ role: "assistant", content: [{{ type: "toolCall", id: "c3", name: "bash", arguments: input }}] }})
messages.push({{ role: "toolResult", ...event, ...changed }})
await sent()
"""
    assert drive_pi(tmp_path, f"{TWO_READS}await sent()\n{recall}") == ["real", "shortened", "real"]
