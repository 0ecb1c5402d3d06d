"""The real Codex CLI with a model that follows a script: an API on localhost that answers and remembers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from readcache.testing.hosts import Bash, Compact, Delegate, Edit, Seen, Step, Worker
from tests.real_hosts.scripted_api import Api, ApiHandler, Look, by_process

Item = dict[str, Any]
FRAME = re.compile(r"(?m)^(?:Chunk ID: .*|Wall time: .*|Original token count: \d+)\n")
CONFIG = """model = "gpt-5-codex"
model_provider = "scripted"
model_context_window = 400000
model_auto_compact_token_limit = 50000
{more}
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
"""


def say(text: str) -> list[Item]:
    return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]


def use(name: str, call_id: str, namespace: str = "", **arguments: Any) -> Item:
    more = {"namespace": namespace} if namespace else {}
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": json.dumps(arguments), **more}


@dataclass
class Model:
    """What the model does. `seen` is what it was sent, a `Seen` for each step."""

    root: Path
    steps: Sequence[Step]
    seen: list[Seen] = field(default_factory=list)
    requests: list[Item] = field(default_factory=list)
    inner: list[Seen] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # ids of the last step's calls
    turn: Iterator[tuple[list[Item], int]] | None = None
    parts: dict[str, int] = field(default_factory=dict)  # sub-agent's task -> requests of it so far
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, body: Item) -> tuple[list[Item], int]:
        """(what it says, how many tokens it was sent)"""
        with self.lock:
            self.requests.append(body)
            task = next((text for text in texts_of(body) if text.startswith("SUBTASK ")), "")
            if task and not any(text == "do it" for text in texts_of(body)):
                return self.answer_in_part(body, task), 100
            self.turn = self.turn or self.play()
            self.body = body
            return next(self.turn)

    def play(self) -> Iterator[tuple[list[Item], int]]:
        for number, step in enumerate(self.steps):
            if isinstance(step, Compact):
                yield say("A summary of what came before."), 100
                self.look()
                continue
            if isinstance(step, Worker):
                yield say("done"), 100
                self.look()
                continue
            assert isinstance(step, tuple)
            self.asked, self.inner = [f"call_{number}_{index}" for index in range(len(step))], []
            next_one = self.steps[number + 1] if number + 1 < len(self.steps) else None
            size = 300_000 if isinstance(next_one, Compact) else 100
            if isinstance(step[0], Delegate):
                yield from self.delegate(step[0], number)
            else:
                yield [self.call(call, name) for call, name in zip(step, self.asked, strict=True)], size
            self.look()
        yield say("done"), 100

    def look(self) -> None:
        """Remembers the request that came after a step."""
        shown = outputs_of(self.body)
        results = tuple(shown[name] for name in self.asked if name in shown)
        self.seen.append(Seen(tuple(texts_of(self.body)), results, tuple(self.inner)))
        self.asked, self.inner = [], []

    def delegate(self, step: Delegate, number: int) -> Iterator[tuple[list[Item], int]]:
        self.asked = []
        self.tasks = {f"SUBTASK {number}": step}
        yield [use("spawn_agent", f"spawn_{number}", "multi_agent_v1", message=f"SUBTASK {number}")], 100
        agent = json.loads(outputs_of(self.body)[f"spawn_{number}"])["agent_id"]
        yield [use("wait_agent", f"wait_{number}", "multi_agent_v1", targets=[agent], timeout_ms=60000)], 100

    def answer_in_part(self, body: Item, task: str) -> list[Item]:
        """What a sub-agent's model says."""
        calls, done = self.tasks[task].calls, self.parts.get(task, 0)
        self.parts[task] = done + 1
        if done:
            shown = outputs_of(body)[f"{task}_{done - 1}"]
            self.inner.append(Seen(tuple(texts_of(body)), (shown,)))
        return [self.call(calls[done], f"{task}_{done}")] if done < len(calls) else say("done")

    def call(self, call: object, name: str) -> Item:
        if isinstance(call, Bash):
            if call.timeout is None:
                return use("exec_command", name, cmd=call.command)
            return use("exec_command", name, cmd=call.command, yield_time_ms=int(call.timeout * 1000))
        assert isinstance(call, Edit)
        lines = (self.root / call.path).read_text().splitlines()
        old = next(line for line in lines if call.old in line)
        hunk = f"*** Update File: {call.path}\n@@\n-{old}\n+{old.replace(call.old, call.new, 1)}\n"
        return use("exec_command", name, cmd=f"apply_patch <<'EOF'\n*** Begin Patch\n{hunk}*** End Patch\nEOF")


def texts_of(body: Item) -> list[str]:
    """Every text of a request."""
    out = [str(body.get("instructions", ""))]
    for item in body["input"]:
        if item["type"] == "function_call":
            arguments = json.loads(item["arguments"])
            out += [str(value) for value in arguments.values()]
        content = item.get("content") or item.get("output") or ()
        out += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return out


def outputs_of(body: Item) -> dict[str, str]:
    """call id -> result"""
    return {item["call_id"]: item["output"] for item in body["input"] if item["type"] == "function_call_output"}


class _Responses(ApiHandler):
    """The Responses API."""

    def do_GET(self) -> None:
        self.begin("application/json")
        self.wfile.write(b'{"object": "list", "data": [], "models": []}')

    def do_POST(self) -> None:
        items, size = self.server.model.answer(self.body())
        usage = {"input_tokens": size, "output_tokens": 10, "total_tokens": size + 10}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        self.begin()
        self._event({"type": "response.created", "response": {"id": "r"}})
        for index, item in enumerate(items):
            self._event({"type": "response.output_item.done", "output_index": index, "item": item})
        done = {"id": "r", "output": items, "usage": usage | details}
        self._event({"type": "response.completed", "response": done})

    def _event(self, event: Item) -> None:
        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def trusted(root: Path) -> str:
    """What Codex writes when the user trusts the hooks: the hashes that it tells."""
    from readcache.hosts.codex import _ask

    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(root)]}},
    ]
    hooks = _ask("codex", asked, str(root))["data"][0]["hooks"]
    return "".join(f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n' for hook in hooks)


@dataclass
class CodexHost:
    """See `HostUnderTest`. `more`: lines of Codex' own settings; `env`: variables."""

    can = frozenset((Bash, Edit, Delegate, Compact, Worker))
    store: Path | None = None
    sandbox: str = "danger-full-access"
    more: str = ""
    env: dict[str, str] = field(default_factory=dict)
    failures: str = ""  # what was noted
    words: tuple[str, ...] = ()  # for `init`
    has_init: bool = True
    trusts: bool = False  # the hooks, as the user of a terminal does; else they are run as they are
    delay: float = 0.0  # seconds for an answer of the model
    look: Look = lambda *_: None  # at what was sent, what `init` said, and with which variables, while all is there

    def normal(self, text: str) -> str:
        """Without the parts of Codex' header that differ from run to run, and that a reply does not have."""
        return FRAME.sub("", text)

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        return self.run(root, steps, on=on).seen

    def run(self, root: Path, steps: Sequence[Step], *, on: bool) -> Model:
        """The model, after the whole conversation."""
        model = Model(root, steps)
        with tempfile.TemporaryDirectory() as directory, Api(model, _Responses) as api:
            home = Path(directory)
            env = (
                os.environ
                | {"CODEX_HOME": directory, "HOME": directory, "XDG_STATE_HOME": f"{directory}/state"}
                | self.env
            )
            if self.store is not None:
                env["READCACHE_STORE"] = str(self.store)
            (home / "config.toml").write_text(CONFIG.format(port=api.server_address[1], more=self.more))
            api.delay, said = self.delay, ""
            if on and self.has_init:
                init = ["readcache", "init", "codex", "--user", *self.words]
                said = subprocess.run(init, env=env, cwd=root, check=True, stdout=-1, text=True).stdout
            words = ["codex", "exec", "--skip-git-repo-check"]
            if self.trusts:
                with (home / "config.toml").open("a") as config, mock.patch.dict(os.environ, env):
                    config.write(trusted(root))
            else:
                words.append("--dangerously-bypass-hook-trust")
            for number in range(len(by_process(steps))):
                resume = ["resume", "--last"] if number else []
                ran = subprocess.run(
                    [*words, "--sandbox", self.sandbox, *resume, "do it"],
                    cwd=root,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=300,
                    check=False,
                )
                assert ran.returncode == 0, ran.stderr[-2000:]
            noted = home / "state/readcache/failures.log"
            self.failures = noted.read_text() if noted.exists() else ""
            self.look(model.seen, said, env)
        return model
