"""The real Copilot CLI and the real Copilot SDK with a model that follows a script: an API on localhost."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from copilot import CopilotClient, PermissionHandler
from copilot.client import RuntimeConnection
from copilot.rpc import HistoryTruncateRequest

from readcache import Reply
from readcache.hosts.copilot_sdk import copilot_hooks
from readcache.testing.hosts import Bash, Compact, Delegate, Edit, Read, Rewind, Seen, Step, Worker
from tests.real_hosts.chat_api import Json, texts_of
from tests.real_hosts.scripted_api import Api, ApiHandler, Look

_SUMMARY = "Please create a detailed summary"
_OF_THE_RUN = re.compile(r"(?<=<shellId: )\S+|/\S*copilot-tool-output\S*|(?<=\()[\d.]+ KB(?=\))")
_NAME, _TASK = "model", "SUBTASK"


@dataclass
class Model:
    """What the model does. `seen` is what it was sent, a `Seen` for each step. `has_turns`: it ends its turn after each
    step, and is asked again."""

    root: Path
    steps: Sequence[Step]
    has_turns: bool
    seen: list[Seen] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    turn: Iterator[Json] | None = None
    body: Json = field(default_factory=dict)
    inner: list[Seen] = field(default_factory=list)
    inner_ids: list[str] = field(default_factory=list)

    def answer(self, body: Json) -> Json:
        """The message that it says."""
        first, last = (next(texts_of([body["messages"][at]]), ("", ""))[1] for at in (1, -1))
        if _SUMMARY in last or not body.get("tools"):
            return {"content": "A summary of what came before."}
        if _TASK in first:
            return self.answer_in_part(body, int(first.split(_TASK)[1].split()[0]))
        self.requests.append(body)
        self.turn, self.body = self.turn or self.play(), body
        return next(self.turn, {"content": "done"})

    def play(self) -> Iterator[Json]:
        for number, step in enumerate(self.steps):
            ids = list[str]()
            if isinstance(step, tuple):
                ids = [f"call_{number}_{index}" for index in range(len(step))]
                self.inner, self.inner_ids = [], []
                yield {"tool_calls": [self.call(call, name) for call, name in zip(step, ids, strict=True)]}
                ids = [] if isinstance(step[0], Delegate) else ids
            elif not self.has_turns:
                yield {"content": "done"}
            self.seen.append(seen_in(self.body, ids, self.inner))
            if self.has_turns:
                yield {"content": "done"}

    def answer_in_part(self, body: Json, number: int) -> Json:
        """What a sub-agent's model says."""
        step, done = self.steps[number], len(self.inner_ids)
        assert isinstance(step, tuple)
        assert isinstance(step[0], Delegate)
        if done:
            self.inner.append(seen_in(body, self.inner_ids[-1:], ()))
        if done == len(step[0].calls):
            return {"content": "done"}
        self.inner_ids.append(f"inner_{number}_{done}")
        return {"tool_calls": [self.call(step[0].calls[done], self.inner_ids[-1])]}

    def call(self, call: object, name: str) -> Json:
        tool, given = "bash", dict[str, Any]()
        if isinstance(call, Bash):  # the tool waits for at least 30 seconds, or not at all
            given = {"command": call.command, "description": "look", **({"mode": "async"} if call.timeout else {})}
        elif isinstance(call, Read):
            span = {} if (call.start, call.end) == (1, None) else {"view_range": [call.start, call.end or -1]}
            tool, given = "view", {"path": str(self.root / call.path), **span}
        elif isinstance(call, Edit):
            lines = (self.root / call.path).read_text().splitlines()
            old = next(line for line in lines if call.old in line)
            tool, given = "edit", {"path": str(self.root / call.path), "old_str": old}
            given["new_str"] = old.replace(call.old, call.new, 1)
        else:
            task, number = {"description": "look", "agent_type": "general-purpose", "name": "sub"}, name.split("_")[1]
            tool, given = "task", {**task, "mode": "sync", "prompt": f"{_TASK}{number} look"}
        return {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}


def cli_version() -> str:
    """The version of the CLI on PATH. Without the variable, an older one starts a newer one that it finds."""
    env = os.environ | {"COPILOT_AUTO_UPDATE": "false"}
    said = subprocess.run(["copilot", "--version"], env=env, capture_output=True, text=True, check=True).stdout
    return said.split()[3].rstrip(".")


def seen_in(body: Json, ids: Sequence[str], inner: Sequence[Seen]) -> Seen:
    """What the model was sent, and the results of these calls in it."""
    shown = {message.get("tool_call_id"): message.get("content") for message in body["messages"]}
    texts = tuple(text for _, text in texts_of(body["messages"]))
    return Seen(texts, tuple(shown[name] for name in ids if name in shown), tuple(inner))


class _ChatCompletions(ApiHandler):
    def do_POST(self) -> None:
        body = self.body()
        message = {"role": "assistant", "content": None, **self.server.model.answer(body)}
        calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", ()))]
        message |= {"tool_calls": calls} if calls else {}
        reason, usage = "tool_calls" if calls else "stop", {"prompt_tokens": 100, "completion_tokens": 5}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": _NAME}
        usage["total_tokens"] = 105
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self.begin("application/json")
            self.wfile.write(json.dumps({**whole, "choices": [choice], "usage": usage}).encode())
            return
        whole["object"] = "chat.completion.chunk"
        parts: list[Json] = [{"delta": message, "finish_reason": None}, {"delta": {}, "finish_reason": reason}]
        chunks: list[Json] = [{**whole, "choices": [{"index": 0, **part}]} for part in parts]
        chunks.append({**whole, "choices": [], "usage": usage})
        self.begin()
        self.wfile.write("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n")


@dataclass
class CopilotHost:
    """See `HostUnderTest`. What both ways share."""

    store: Path | None = None
    has_turns = False

    def normal(self, text: str) -> str:
        """Without what differs from run to run."""
        return re.sub(r"/with(out)?/", "/project/", _OF_THE_RUN.sub("…", text))  # the suite's two projects

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        return self.run(root, steps, on=on).seen

    def run(self, root: Path, steps: Sequence[Step], *, on: bool) -> Model:
        """The model, after the whole conversation."""
        model = Model(root, steps, self.has_turns)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory, Api(model, _ChatCompletions) as api:
            self.talk(model, f"http://127.0.0.1:{api.server_address[1]}/v1", Path(directory), api, on=on)
        assert len(model.seen) == len(steps), model.requests[-1]["messages"][-3:]
        return model

    def talk(self, model: Model, url: str, home: Path, api: Api, *, on: bool) -> None:
        """Hold the conversation."""
        raise NotImplementedError


@dataclass
class CopilotCli(CopilotHost):
    """The CLI with `readcache init copilot`: a process for each prompt. `env`: variables; `words`: for `init`."""

    can = frozenset((Bash, Read, Edit, Delegate, Compact, Worker))
    env: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ("--user",)
    failures: str = ""  # what was noted
    delay: float = 0.0  # seconds for an answer of the model
    look: Look = lambda *_: None  # at what was sent, what `init` said, and with which variables, while all is there

    def talk(self, model: Model, url: str, home: Path, api: Api, *, on: bool) -> None:
        env = {
            **os.environ,
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),  # its own files
            "COPILOT_PROVIDER_BASE_URL": url,
            "COPILOT_MODEL": _NAME,
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            **({} if self.store is None else {"READCACHE_STORE": str(self.store)}),
            **self.env,
        }
        api.delay, said, session = self.delay, "", str(uuid.uuid4())
        if on:
            init = ["readcache", "init", "copilot", *self.words]
            said = subprocess.run(init, env=env, cwd=model.root, check=True, stdout=-1, text=True).stdout
        events = [step for step in model.steps if not isinstance(step, tuple)]
        for event in (None, *events):
            for prompt in (*(["/compact"] if isinstance(event, Compact) else []), "go on"):
                command = ["copilot", "-p", prompt, "--allow-all", "--session-id", session]
                ran = subprocess.run(
                    command,
                    cwd=model.root,
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


@dataclass
class CopilotSdk(CopilotHost):
    """The SDK for Python with our hook in this process. `more`: own hooks. `settings`: see `copilot_hooks`."""

    can = frozenset((Bash, Read, Edit, Delegate, Compact, Rewind, Worker))
    has_turns = True
    more: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)

    def talk(self, model: Model, url: str, home: Path, api: Api, *, on: bool) -> None:  # noqa: ARG002
        asyncio.run(self._talk(model, url, home, on=on))

    async def _talk(self, model: Model, url: str, home: Path, *, on: bool) -> None:
        session, client = None, self._client(model, home)
        for step in model.steps:
            if session is None or isinstance(step, Worker):
                own = self._hooks(model, home) if on else self.more
                await client.stop()
                client = self._client(model, home)
                await client.start()
                provider = {"type": "openai", "base_url": url, "api_key": "none"}
                given: dict[str, Any] = {"model": _NAME, "provider": provider, "hooks": own}
                given |= {"on_permission_request": PermissionHandler.approve_all, "working_directory": str(model.root)}
                if session is None:
                    session = await client.create_session(**given)
                else:
                    session = await client.resume_session(session.session_id, **given)
            if isinstance(step, Compact):
                await session.rpc.history.compact()
            elif isinstance(step, Rewind):
                asked = [event for event in await session.get_events() if event.type.value == "user.message"]
                await session.rpc.history.truncate(HistoryTruncateRequest(str(asked[-step.calls].id)))
            await session.send_and_wait("go on", timeout=120)
        await client.stop()

    def _client(self, model: Model, home: Path) -> CopilotClient:
        path = str(Path(shutil.which("copilot") or "").resolve().parents[1] / "copilot-linux-x64/copilot")
        connection = RuntimeConnection.for_stdio(path=path)
        return CopilotClient(
            connection=connection,
            base_directory=str(home / ".copilot"),
            working_directory=str(model.root),
            use_logged_in_user=False,
            log_level="none",
        )

    def _hooks(self, model: Model, home: Path) -> Any:
        store = str(self.store or home / "store.db")
        settings = {"on_reply": self.replies.append, "store": store, **self.settings}
        return copilot_hooks(str(model.root), self.more, base_directory=str(home / ".copilot"), **settings)
