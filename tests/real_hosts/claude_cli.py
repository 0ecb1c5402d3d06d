"""Claude Code, the real program, as a host of the conformance suite: driven by JSON lines, with a scripted model."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from readcache.testing.conformance import make_project
from readcache.testing.hosts import Bash, Compact, Delegate, Edit, Read, Rewind, Seen, Step
from tests.helpers.claude import IN_THE_MIDDLE
from tests.real_hosts.messages_api import ScriptedModel, messages_api, seen_in

# Not those in which files stand that it shows again after a compaction.
_REMINDER = re.compile(r"\n*<system-reminder>(?!\s*Result of calling the ).*?</system-reminder>\n*", re.DOTALL)
_OF_THE_RUN = re.compile(r"(?<=agentId: )\w+|(?<=to: ')\w+|(?<=duration_ms: )\d+|(?<=tool-results/)\w+|[0-9a-f-]{36}")
_MOST_WAITED, _BETWEEN = 10.0, 0.7  # seconds for a server to come, and for a plugin to hear of it
_EMPTY_LINE = re.compile(r"\d+\t?$")


class ClaudeCode:
    """`init`: the words after `readcache init claude-code --project` that switch readcache on by hooks, or after
    `--user` by a plugin, which Claude Code loads only in folders that it trusts or for all of them."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Delegate, Compact, Rewind))

    def __init__(self, *init: str, way: str = "--project") -> None:
        self.init = (way, *init)
        self.cannot_shorten: dict[str, tuple[str, ...]] = {} if way == "--user" else IN_THE_MIDDLE  # hooks
        self.store: Path | None = None

    def normal(self, text: str) -> str:
        """Without what differs from run to run, and without the line that Claude Code's Read adds to a file that ends
        with a newline."""
        text = _REMINDER.sub("\n", text).replace("/without", "/with").rstrip("\n")
        lines = _OF_THE_RUN.sub("…", text).split("\n")
        return "\n".join(lines[:-1] if len(lines) > 1 and _EMPTY_LINE.match(lines[-1]) else lines)

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        model = ScriptedModel(str(root))
        with messages_api(model) as address:
            talk = self.talk(root, address, on=on)
            try:
                return [self.step(talk, model, step) for step in steps]
            finally:
                talk.close()
                end_server(root)

    def talk(self, root: Path, address: str, *, on: bool, more: dict[str, str] | None = None) -> Talk:
        """A conversation that has not begun."""
        if on:
            switch_on(root, *self.init)
        store = {} if self.store is None else {"READCACHE_STORE": str(self.store)}
        return Talk(root, address, {**store, **(more or {})})

    def step(self, talk: Talk, model: ScriptedModel, step: Step) -> Seen:
        """What the model was sent after it. It takes its time for its first answer, as a model does, so that a plugin
        finds the server that it has started."""
        if talk.is_new and "--user" in self.init:
            model.before_answer = talk.wait_for_server
            model.delay = 0.25  # a plugin decides by the transcript, where the newest request then stands
        talk.is_new = False
        if isinstance(step, Compact):
            talk.say("/compact")
        elif isinstance(step, Rewind):
            talk.go_back(step.calls)
        elif isinstance(step, tuple):
            ids = model.calls(step)
            talk.say("go on")
            names = [block["input"]["prompt"] for block in sent_calls(model, ids) if block["name"] == "Agent"]
            inner = [one for name in names for one in inner_seen(model.inner[name])]
            return seen_in(model.requests[-1], ids, inner)
        talk.say("go on")
        return seen_in(model.requests[-1], ())


def sent_calls(model: ScriptedModel, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The calls as they stand in the last request."""
    content = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "assistant"]
    return [block for blocks in content if isinstance(blocks, list) for block in blocks if block.get("id") in ids]


def inner_seen(bodies: Sequence[dict[str, Any]]) -> list[Seen]:
    """What a sub-agent's model was sent after each of its calls."""
    found = []
    for body in bodies[1:]:
        last = [block["tool_use_id"] for block in body["messages"][-1]["content"] if "tool_use_id" in block]
        last = last or [block["tool_use_id"] for block in body["messages"][-2]["content"] if "tool_use_id" in block]
        found.append(seen_in(body, last))
    return found


def switch_on(root: Path, *words: str) -> None:
    """`readcache init claude-code`, with these words."""
    command = [sys.executable, "-m", "readcache", "init", "claude-code", *words]
    subprocess.run(command, cwd=root, env=environment(root), check=True, capture_output=True)


def end_server(root: Path) -> None:
    """Ends the server that was started for this project, and takes its state away."""
    env = environment(root)
    command = [sys.executable, "-m", "readcache", "serve", "--stop"]
    subprocess.run(command, cwd=root, env=env, check=False, capture_output=True)
    shutil.rmtree(env["XDG_STATE_HOME"], ignore_errors=True)


def program() -> str:
    """The real one."""
    packaged = Path(os.environ["READCACHE_TEST_NPM"]) / "node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude"
    return str(packaged) if packaged.exists() else shutil.which("claude") or ""


def environment(root: Path) -> dict[str, str]:
    """Of the conversation in that project: nothing of this user's, and no other net."""
    home = root.parent / f".home-{root.name}"
    home.mkdir(exist_ok=True)
    bin = home / "bin"  # Claude Code as a user has it: `init` asks it for its version
    bin.mkdir(exist_ok=True)
    if program() and not (bin / "claude").exists():
        (bin / "claude").symlink_to(program())
    state = Path(tempfile.gettempdir()) / f"rc-{hashlib.sha256(str(home).encode()).hexdigest()[:12]}"
    off = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX")
    path = os.pathsep.join((str(bin), os.environ["PATH"]))
    return {"PATH": path, "HOME": str(home), "XDG_STATE_HOME": str(state), **dict.fromkeys(off, "1")}


class Talk:
    """One conversation."""

    def __init__(self, root: Path, address: str, more: dict[str, str] | None = None) -> None:
        self.root, self.session = root, ""
        self.env = environment(root) | {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"} | (more or {})
        self.said: list[dict[str, Any]] = []  # by the program
        self.is_new = True  # it has just been started
        self._start()

    def _start(self, *words: str) -> None:
        lines = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        command = [program(), *lines, "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5", *words]
        self._process = subprocess.Popen(
            command, cwd=self.root, env=self.env, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True
        )

    def say(self, text: str) -> dict[str, Any]:
        """The user says something; returns when the turn is over, with the program's last word on it."""
        assert self._process.stdin
        assert self._process.stdout
        message = {"type": "user", "message": {"role": "user", "content": text}}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            self.said.append(json.loads(line))
            self.session = self.said[-1].get("session_id") or self.session
            if self.said[-1]["type"] == "result":
                assert not self.said[-1].get("is_error"), self.said[-1]
                return self.said[-1]
        raise AssertionError("Claude Code ended")

    def entries(self) -> list[dict[str, Any]]:
        """The conversation's transcript."""
        (path,) = (Path(self.env["HOME"]) / ".claude/projects").glob(f"*/{self.session}.jsonl")
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def go_back(self, calls: int, *words: str) -> None:
        """As if the last calls and all after them had not been made. `words`: more of the command line."""
        answers = [entry for entry in self.entries() if entry["type"] == "assistant"]
        made = [at for at, entry in enumerate(answers) if entry["message"]["content"][0]["type"] == "tool_use"]
        self.again("--resume-session-at", answers[made[-calls] - 1]["uuid"], *words)

    def wait_for_server(self) -> None:
        """Returns when the server of this conversation answers; after a while, if none does."""
        until = time.monotonic() + _MOST_WAITED
        while not any(map(Path.is_socket, Path(self.env["XDG_STATE_HOME"]).glob("readcache/serve/*"))):
            if time.monotonic() > until:
                return
            time.sleep(0.05)
        time.sleep(_BETWEEN)

    def again(self, *words: str) -> None:
        """The program is ended, and resumes the conversation."""
        self.close()
        self.is_new = True
        self._start("--resume", self.session, *words)

    def close(self) -> None:
        """Ends the program."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


class Chat:
    """One conversation with readcache in a project of `make_project`."""

    def __init__(self, host: ClaudeCode, root: Path, talk: Talk, model: ScriptedModel) -> None:
        self.host, self.root, self.talk, self.model = host, root, talk, model

    def step(self, *calls: Bash | Read | Edit | Delegate) -> list[str]:
        """The results of calls made at once."""
        return list(self.seen(calls).results)

    def seen(self, step: Step) -> Seen:
        """What the model was sent after a step."""
        return self.host.step(self.talk, self.model, step)


@contextmanager
def conversation(
    root: Path,
    *,
    on: bool = True,
    hooks: Sequence[dict[str, object]] = (),
    init: str = "",
    way: str = "--project",
    more: dict[str, str] | None = None,
) -> Iterator[Chat]:
    """`hooks`: of the user's own, after each tool. `more`: of the environment. The others: see `ClaudeCode`."""
    make_project(root)
    if hooks:
        (root / ".claude").mkdir()
        (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PostToolUse": [{"hooks": list(hooks)}]}}))
    model = ScriptedModel(str(root))
    with messages_api(model) as address:
        host = ClaudeCode(*init.split(), way=way)
        talk = host.talk(root, address, on=on, more=more)
        chat = Chat(host, root, talk, model)
        try:
            yield chat
        finally:
            chat.talk.close()
            end_server(root)
