"""opencode as the suite drives it: each step is a turn of its own, so that any of them can be taken back."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from readcache import Marks
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step, ToolUse, Worker
from tests.real_hosts.opencode.scripted import MODEL, Message, Model, Opencode, install, opencode

PROGRAM = (sys.executable, "-m", "readcache")
TOP = Path(__file__).resolve().parents[3]


class OpencodeHost:
    """Two running opencodes, one with the plugin in its user's configuration; or two of a fork."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind, Worker))

    def __init__(self, program: str = "opencode") -> None:
        self.program, self.store = program, cast("Path | None", None)
        self.clear: Marks | None = None
        self._stack = ExitStack()
        self._homes: dict[tuple[bool, Path | None, Marks | None], Path] = {}
        self._running: dict[tuple[bool, Path | None, Marks | None, int], Opencode] = {}
        self._home = Path(tempfile.mkdtemp(prefix="readcache-opencode-"))

    def opencode(self, *, on: bool, process: int = 0) -> Opencode:
        """It, started when it is first needed. `process`: another one of the same user."""
        kind = on, self.store if on else None, self.clear
        key = *kind, process
        if key not in self._running:
            home = self._homes.setdefault(kind, self._home / f"{len(self._homes)}")
            if on:
                install(home, PROGRAM, is_user=True, host=self.program)
            env = {"PYTHONPATH": str(TOP)} | ({} if self.store is None else {"READCACHE_STORE": str(self.store)})
            env |= {} if self.clear is None else {"READCACHE_CLEAR": f"{self.clear.above}:{self.clear.down_to}"}
            self._running[key] = self._stack.enter_context(
                opencode(home, Model(), home / "nowhere", self.program, **env)
            )
        return self._running[key]

    def close(self) -> None:
        """Ends what was started."""
        self._stack.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def normal(self, text: str) -> str:
        """Without what differs between two projects, and two tasks."""
        return re.sub(r"ses_\w+", "ses", re.sub(r"/\S*/(with|without)/", "/project/", text))

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        talk = Conversation(self.opencode(on=on).at(root))
        talk.elsewhere = lambda process: self.opencode(on=on, process=process).at(root)
        return talk.run_steps(steps)


class Conversation:
    """One session, and the model that follows the script."""

    def __init__(self, host: Opencode) -> None:
        self.host = host
        self.elsewhere: Callable[[int], Opencode] = lambda _: host
        self.session = host.begin()
        self.requests: list[Message] = []  # of this step: to the main agent's model
        self.inner: list[Message] = []  # to the sub-agent's
        self.calls: tuple[ToolUse, ...] = ()
        self.ids: list[str] = []
        self.turns: list[str] = []  # the user's message that began each turn with calls
        self.count = 0
        self.result_chars = 0  # of all results in all requests

    def run_steps(self, steps: Sequence[Step]) -> list[Seen]:
        """One `Seen` for each step."""
        self.host.model.script = self.script
        return [self.step(step) for step in steps]

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        self.requests, self.inner, self.ids, self.calls = [], [], [], ()
        if isinstance(step, tuple):
            self.calls = step
        elif isinstance(step, Compact):
            self.host.ask(f"/session/{self.session}/summarize", MODEL)
        elif isinstance(step, Clear):
            self.clear()
        elif isinstance(step, Worker):
            self.host = self.elsewhere(step.number)
            self.host.model.script = self.script
        elif isinstance(step, Rewind):
            self.host.ask(f"/session/{self.session}/revert", {"messageID": self.turns[-step.calls]})
            del self.turns[-step.calls :]
        self.requests = []
        self.host.prompt(self.session, "go on")
        if isinstance(step, tuple):
            users = [each["info"]["id"] for each in self.host.messages(self.session) if each["info"]["role"] == "user"]
            self.turns.append(users[-1])
        inner = tuple(seen(request, self.last_ids(request)) for request in self.inner[1:])
        delegates = any(isinstance(call, Delegate) for call in self.calls)
        return seen(self.requests[-1], [] if delegates else self.ids, inner)

    def clear(self) -> None:
        """As opencode's pruning does, which begins at 40,000 tokens."""
        part = next(iter(self.host.parts(self.session).values()))
        part["state"]["time"]["compacted"] = 1
        self.host.ask(f"/session/{self.session}/message/{part['messageID']}/part/{part['id']}", part, "PATCH")

    def script(self, request: Message) -> Message:
        """What the model answers."""
        if not request.get("tools"):
            self.host.model.prompt = 100  # it was too long, and is short from now on
            return {"content": "A title, or a summary."}
        results = [message for message in request["messages"] if message["role"] == "tool"]
        self.result_chars += sum(len(text) for message in results for text in texts_of(message))
        texts = [text for message in request["messages"] if message["role"] == "user" for text in texts_of(message)]
        if any("as a sub-agent" in text for text in texts):
            return self.sub_script(request)
        self.requests.append(request)
        if len(self.requests) > 1 or not self.calls:
            return {"content": "done"}
        calls = [self.tool_call(call) for call in self.calls]
        self.ids = [name for name, _, _ in calls]
        return {"tool_calls": calls}

    def sub_script(self, request: Message) -> Message:
        """What the sub-agent's model answers: the next call, until there is none."""
        self.inner.append(request)
        (delegate,) = (call for call in self.calls if isinstance(call, Delegate))
        if len(self.inner) > len(delegate.calls):
            return {"content": "done"}
        return {"tool_calls": [self.tool_call(delegate.calls[len(self.inner) - 1])]}

    def last_ids(self, request: Message) -> list[str]:
        """The ids of the newest results."""
        return [message["tool_call_id"] for message in request["messages"] if message["role"] == "tool"][-1:]

    def tool_call(self, call: ToolUse) -> tuple[str, str, dict[str, Any]]:
        """(id, tool, arguments)."""
        self.count += 1
        name = f"call_{self.session[-6:]}_{self.count}"
        if isinstance(call, Bash):
            late = {} if call.timeout is None else {"timeout": int(call.timeout * 1000)}
            return name, "bash", {"command": call.command, "description": "a command", **late}
        if isinstance(call, Delegate):
            given = {"description": "a task", "prompt": "Work as a sub-agent.", "subagent_type": "general"}
            return name, "task", given
        path = str(self.host.root / call.path)
        if isinstance(call, Edit):
            return name, "edit", {"filePath": path, "oldString": call.old, "newString": call.new}
        limit = {} if call.end is None else {"limit": call.end - call.start + 1}
        return name, "read", {"filePath": path, "offset": call.start, **limit}


def texts_of(message: Message) -> list[str]:
    """The texts of a message of the chat API, and of what it calls."""
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    for call in message.get("tool_calls") or ():
        texts += map(str, json.loads(call["function"]["arguments"]).values())
    return texts


def seen(request: Message, ids: Sequence[str], inner: tuple[Seen, ...] = ()) -> Seen:
    """A request as the suite has it."""
    texts = tuple(text for message in request["messages"] for text in texts_of(message))
    results = {m["tool_call_id"]: "".join(texts_of(m)) for m in request["messages"] if m["role"] == "tool"}
    return Seen(texts, tuple(results[name] for name in ids), inner)
