"""Plugins that an earlier build installed (commit 1351b17, in data/), with the server of this one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.files import WATCHDOG
from tests.serve.conftest import ServerUnderTest

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
DATA = Path(__file__).parent / "data"
TEXT = "".join(f"{number} bottles of beer on the wall\n" for number in range(40)).rstrip("\n")
REQUEST = {
    "type": "api-request",
    "id": "r",
    "params": {},
    "keep": 0,
    "tail": [],
    "timestamp": "2026-11-25T20:00:00.500Z",
}

PLUGIN = """
const plugin = new ReadcachePlugin()
const messages = [{ role: "user", text: "go", results: [], calls: [] }], shown = []
for (const id of ["a", "b"]) {
  const given = { command: "cat f" }
  const kept = await plugin.result("s", id, TEXT, [["observe", { ...given, output: TEXT, cwd: "/w" }]])
  const calls = [{ id, tool: "bash", given }], results = [{ id, real: TEXT, kept }]
  messages.push({ role: "assistant", text: "", calls, results })
  shown.push(kept?.text ?? TEXT)
}
const request = await plugin.request("s", messages)
const refused = await plugin.result("s", "c", TEXT, [["observe", { command: 3, output: TEXT }]])
console.log(JSON.stringify({ shown, texts: request.texts.map((text) => text ?? TEXT), refused: refused ?? null }))
plugin.server.end()
"""

CLAUDE_CODE = """
import { register } from "./register.mjs"
import { request } from "node:http"
const [socket, cwd, transcript_path] = process.argv.slice(2)
const hooks = {}, uses = [], messages = [], shown = []
Date.now = () => Date.parse("2026-11-25T20:00:00.400Z")
globalThis.setTimeout = () => 0 // no answer is late
const fetch = (_, { body, socketPath }) => new Promise((resolve, reject) => {
  const sent = request({ socketPath, method: "POST", path: "/" }, (answer) => {
    let text = ""
    answer.setEncoding("utf8").on("data", (part) => (text += part))
    answer.on("end", () => resolve({ ok: answer.statusCode === 200, text }))
  })
  sent.on("error", reject).end(body)
})
const $ = {
  session: {
    cwd: async () => cwd,
    id: async () => "c",
    messages: async ({ as }) => (as ? messages : uses.length ? [{ toolUses: uses }] : undefined),
  },
  process: { run: async () => ({ exitCode: 0, stdout: JSON.stringify({ socket, environ: {} }) }) },
  http: { fetch },
}
register((...words) => { hooks[words[0] + (words[1].door ?? "")] = words.at(-1) })
await hooks["session.start"]($, { cwd }, async () => undefined)
await new Promise((next) => setImmediate(next)) // it knows the socket
await hooks["classic.UserPromptSubmit"]($, { transcript_path }, async () => undefined)
for (const tool_use_id of ["a", "b"]) {
  const input = { command: "cat f" }, use = { tool_use_id, tool: "Bash", input }
  uses.push(use)
  messages.push({ role: "assistant", content: [{ type: "tool_use", id: tool_use_id, input }] })
  const e = { message: { content: [{ type: "tool_result", tool_use_id, content: TEXT }] } }
  const kept = await hooks["session.appendtool-result"]($, e, async (row) => row)
  shown.push(kept.message.content[0].content)
  messages.push({ role: "user", content: kept.message.content })
  use.text = "shown"
}
console.log(JSON.stringify(shown))
"""


def run(tmp_path: Path, script: str, *words: str, env: dict[str, str]) -> Any:
    """Return what the script prints."""
    (tmp_path / "test.mjs").write_text(script.replace("TEXT", "process.env.TEXT"))
    ran = subprocess.run(
        ["node", tmp_path / "test.mjs", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**env, "TEXT": TEXT},
        timeout=WATCHDOG,
    )
    return json.loads(ran.stdout)


def test_a_plugin_of_opencode_or_pi_goes_on(at: ServerUnderTest, tmp_path: Path) -> None:
    client, plugin = ((DATA / f"{name}-1351b17.js").read_text(encoding="utf-8") for name in ("client", "plugin"))
    client = client.replace("deadline = 2000", f"deadline = {WATCHDOG}_000")  # no clock decides
    program = json.dumps([sys.executable, "-m", "readcache"])
    plugin = plugin.replace('program: ["readcache"]', f"program: {program}")
    found = run(tmp_path, f"{client}\n{plugin}\n{PLUGIN}", env=at.env)
    assert found["shown"][0] == TEXT
    assert found["shown"][1].startswith("[FILE_UNCHANGED ")
    assert found["texts"] == found["shown"]
    assert found["refused"] is None, "the real output is shown"


def test_the_plugin_of_claude_code_goes_on(at: ServerUnderTest, tmp_path: Path) -> None:
    at.start()
    register = (DATA / "register-1351b17.js").read_text(encoding="utf-8")
    (tmp_path / "register.mjs").write_text(register.replace("PATIENCE = 50", f"PATIENCE = {WATCHDOG}_000"))
    (tmp_path / "t.jsonl").write_text("\n" + json.dumps(REQUEST, separators=(",", ":")) + "\n")
    (tmp_path / "f").write_text(TEXT + "\n")
    with tempfile.TemporaryDirectory(prefix="rc-") as short:  # Node takes no long path of a socket
        socket = Path(short, "s")
        socket.symlink_to(at.path)
        words = str(socket), str(tmp_path), str(tmp_path / "t.jsonl")
        first, second = run(tmp_path, CLAUDE_CODE, *words, env=at.env)
    assert first == TEXT
    assert second.startswith("[FILE_UNCHANGED ")
