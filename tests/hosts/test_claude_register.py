"""Claude Code's plugin in Node, with a stand-in for Claude Code that has a clock of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")

FAKE_HOST = """
import { register } from "./register.mjs"
let now = 0, delay = 0, isThere = true
const timers = [], hooks = {}, told = []
globalThis.setTimeout = (f, ms) => { const timer = { at: now + ms, f }; timers.push(timer); return timer }
globalThis.clearTimeout = (timer) => { const at = timers.indexOf(timer); if (at >= 0) timers.splice(at, 1) }
Date.now = () => now
const settle = async () => { for (let n = 0; n < 100; n++) await Promise.resolve() }
async function pass(milliseconds) {
  const until = now + milliseconds
  for (;;) {
    await settle()
    timers.sort((a, b) => a.at - b.at)
    if (!timers.length || timers[0].at > until) break
    now = timers[0].at
    timers.shift().f()
  }
  now = until
}
async function fetch(_, { body }) {
  const event = JSON.parse(JSON.parse(body).params.event)
  if (!isThere) throw new Error("refused")
  told.push(event)
  await new Promise((done) => setTimeout(done, delay))
  return { ok: true, text: '{"jsonrpc":"2.0","id":1,"result":""}' }
}
const uses = []
const $ = {
  session: { cwd: async () => "/p", id: async () => "c", messages: async () => [{ toolUses: uses }] },
  process: { run: async () => ({ exitCode: isThere ? 0 : 1, stdout: JSON.stringify({ socket: "/s", environ: {} }) }) },
  http: { fetch },
}
register((...words) => { hooks[words[0] + (words[1].door ?? "")] = words.at(-1) })
// How long a result waits.
async function result() {
  const tool_use_id = `call_${uses.length}`, began = now
  let shown
  uses.push({ tool_use_id, tool: "Bash", input: { command: "cat f" } })
  const e = { message: { content: [{ type: "tool_result", tool_use_id, content: "text" }] } }
  hooks["session.appendtool-result"]($, e, async (row) => { shown = now; return row })
  await pass(5000)
  uses.at(-1).text = "text"
  return shown - began
}
await hooks["session.start"]($, { cwd: "/p" }, async () => undefined)
await pass(5000)
"""


def run(tmp_path: Path, script: str) -> Any:
    """What the script prints with `print`, in the stand-in."""
    module = (files("readcache.hosts") / "claude_code/register.js").read_text(encoding="utf-8")
    (tmp_path / "register.mjs").write_text(module)
    (tmp_path / "test.mjs").write_text(FAKE_HOST + script)
    ran = subprocess.run(["node", tmp_path / "test.mjs"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def test_it_waits_for_no_answer_after_three_late_ones_until_one_comes_in_time(tmp_path: Path) -> None:
    waits = run(
        tmp_path,
        """
const waits = []
for (const milliseconds of [600, 100, 600, 600, 600, 600, 100, 100]) {
  delay = milliseconds
  waits.push(await result())
}
console.log(JSON.stringify(waits))
""",
    )
    assert waits == [500, 100, 500, 500, 500, 0, 0, 100]


def test_every_result_is_told_also_those_that_came_while_no_server_was_there(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        """
await result()
isThere = false
await result(); await result()
isThere = true
await result()
void hooks["session.end"]($, {}, async () => undefined)
await pass(5000)
console.log(JSON.stringify(told))
""",
    )
    judged = [event["tool_use_id"] for event in told if event["hook_event_name"] == "ToolResult"]
    missed = [event["tool_use_id"] for one in told for event in one["missed"]]
    settled = [shown["tool_use_id"] for one in told for shown in one["settled"]]
    assert sorted(judged + missed) == ["call_0", "call_1", "call_2", "call_3"]
    assert missed == ["call_1", "call_2"]
    assert settled == judged
    assert [text for one in told for text, _ in one["errors"]], "that no server was started is told"


def test_a_recall_is_waited_for_and_inserted_without_proof(tmp_path: Path) -> None:
    """Also in a conversation that began in this process, in which none of the lines was shown yet."""
    shown = run(
        tmp_path,
        """
const rows = []
async function append(text) {
  const tool_use_id = `call_${uses.length}`
  uses.push({ tool_use_id, tool: "Bash", input: { command: "readcache recall 7f3a91.1" } })
  const content = [{ type: "tool_result", tool_use_id, content: text, is_error: true }]
  void hooks["session.appendtool-result"]($, { message: { content } }, async (row) => { rows.push(row); return row })
  await pass(5000)
}
const first = $.session.messages
$.session.messages = async () => []
await hooks["classic.UserPromptSubmit"]($, { transcript_path: "/t" }, async () => undefined)
$.session.messages = first
$.http.fetch = async (_, { body }) => {
  const result = JSON.stringify({ text: "earlier", sources: [], recalled: true })
  return { ok: true, text: JSON.stringify({ jsonrpc: "2.0", id: 1, result }) }
}
await append("bash: readcache: command not found")
await append("another text that the server has not to be asked about")
console.log(JSON.stringify(rows.map(({ message }) => message.content[0])))
""",
    )
    assert [(block["content"][:7], block["is_error"]) for block in shown] == [("earlier", False), ("another", True)]
