"""The real pi with a model that follows a script: pi's RPC mode, a chat API on localhost, and a turn for each step."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readcache.hosts import find_host
from readcache.hosts.host import InstallTarget, OwnFile
from readcache.testing.hosts import Bash, Compact, Edit, Read, Rewind, Seen, Step, ToolUse, Worker
from tests.helpers.files import WATCHDOG
from tests.real_hosts.opencode.host import seen
from tests.real_hosts.opencode.scripted import Message, Model
from tests.real_hosts.scripted_api import by_process

PROGRAM = (sys.executable, "-m", "readcache")
TOP = Path(__file__).resolve().parents[3]
# Going back is a key in pi's terminal, and has no command in its RPC mode.
BACK = """
export default (pi) => pi.registerCommand("back", { handler: (id, ctx) => ctx.navigateTree(id, { summarize: false }) })
"""


def extension(directory: Path, program: Sequence[str], *, is_user: bool, mode: str = "on") -> Path:
    """Writes what `readcache init pi` does, for the project `directory` or the user whose home that is."""
    (change,) = find_host("pi").changes(
        InstallTarget(str(directory), str(directory), is_user, tuple(program), mode, "default")
    )
    assert isinstance(change, OwnFile)
    path = Path(change.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(change.text, encoding="utf-8")
    return path


@dataclass
class Pi:
    """A running `pi --mode rpc`, and the conversation with it."""

    process: subprocess.Popen[str]
    model: Model
    root: Path
    calls: tuple[ToolUse, ...] = ()
    requests: list[Message] = field(default_factory=list)  # of this turn
    ids: list[str] = field(default_factory=list)
    result_chars: int = 0  # of all results in all requests
    count: int = 0

    def ask(self, kind: str, **more: Any) -> Message:
        """One command, and what pi answers."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": kind, "type": kind, **more}) + "\n")
        self.process.stdin.flush()
        answer = self.until(lambda event: event["type"] == "response")
        assert answer["success"], answer
        found: Message = answer.get("data") or {}
        return found

    def until(self, wanted: Any) -> Message:
        """The next event that is wanted."""
        assert self.process.stdout is not None
        return next(event for event in map(json.loads, self.process.stdout) if wanted(event))

    def turn(self, *calls: ToolUse) -> None:
        """A turn in which the model makes these calls at once."""
        self.calls, self.requests, self.ids = calls, [], []
        self.model.script = self.script
        self.ask("prompt", message="go on")
        self.until(lambda event: event["type"] == "agent_settled")

    def run_steps(self, *steps: Step) -> list[Seen]:
        """One `Seen` for each step."""
        return [self.step(step) for step in steps]

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        if isinstance(step, Compact):
            self.ask("compact")
        elif isinstance(step, Rewind):
            entries = self.ask("get_entries")["entries"]
            users = [each for each in entries if each.get("message", {}).get("role") == "user"]
            self.ask("prompt", message=f"/back {users[-step.calls]['id']}")
        self.turn(*(step if isinstance(step, tuple) else ()))
        return seen(self.requests[-1], self.ids)

    def script(self, request: Message) -> Message:
        """What the model answers."""
        if not request.get("tools"):
            self.model.prompt = 100  # it was too long, and is short from now on
            return {"content": "A summary."}
        results = [message for message in request["messages"] if message["role"] == "tool"]
        self.result_chars += sum(len(text) for message in results for text in seen({"messages": [message]}, ()).texts)
        self.requests.append(request)
        if len(self.requests) > 1 or not self.calls:
            return {"content": "done"}
        calls = [self.tool_call(call) for call in self.calls]
        self.ids = [name for name, _, _ in calls]
        return {"tool_calls": calls}

    def tool_call(self, call: ToolUse) -> tuple[str, str, dict[str, Any]]:
        """(id, tool, arguments)."""
        self.count += 1
        name = f"call_{self.count}_{os.urandom(3).hex()}"
        if isinstance(call, Bash):
            return name, "bash", {"command": call.command, **({"timeout": call.timeout} if call.timeout else {})}
        if isinstance(call, Read):
            limit = {} if call.end is None else {"limit": call.end - call.start + 1}
            return name, "read", {"path": call.path, "offset": call.start, **limit}
        assert isinstance(call, Edit)
        return name, "edit", {"path": call.path, "edits": [{"oldText": call.old, "newText": call.new}]}


@contextmanager
def pi(home: Path, root: Path, *words: str, **env: str) -> Iterator[Pi]:
    """pi, with nothing but the scripted model configured."""
    model, agent = Model(), home / ".pi/agent"
    agent.mkdir(exist_ok=True, parents=True)
    limits = {"id": "model", "contextWindow": 1_000_000, "maxTokens": 8000}
    provider = {"baseUrl": model.url, "api": "openai-completions", "apiKey": "none", "models": [limits]}
    (agent / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
    few = {"enabled": False, "keepRecentTokens": 1}
    settings = {"compaction": few, "defaultProjectTrust": "always", "enableAnalytics": False}
    (agent / "settings.json").write_text(json.dumps(settings))
    (home / "back.js").write_text(BACK)
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "PI_OFFLINE": "1", "PYTHONPATH": str(TOP), **env}
    command = ["pi", "--mode", "rpc", "--provider", "scripted", "--model", "model", "-e", str(home / "back.js"), *words]
    pipe = subprocess.PIPE
    with (
        (home / "log").open("a") as log,
        subprocess.Popen(command, cwd=root, env=variables, stdin=pipe, stdout=pipe, stderr=log, text=True) as process,
    ):
        try:
            yield Pi(process, model, root)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(WATCHDOG)
            model.shutdown()
            model.server_close()


class PiHost:
    """See `HostUnderTest`: a pi for each conversation, and one more for each `Worker`."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Compact, Rewind, Worker))
    store: Path | None = None

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        with tempfile.TemporaryDirectory() as home:
            if on:
                extension(Path(home), PROGRAM, is_user=True)
            env = {} if self.store is None else {"READCACHE_STORE": str(self.store)}
            seen: list[Seen] = []
            for part in by_process(steps):
                with pi(Path(home), root, *(["--continue"] if seen else []), **env) as running:
                    seen += running.run_steps(*part)
            return seen

    def normal(self, text: str) -> str:
        """Without what differs between two projects, and the name of a file with a whole output."""
        return re.sub(r"Full output: \S*", "Full output: …", re.sub(r"/\S*/(with|without)/", "/project/", text))
