"""The real Gemini CLI with a model that follows a script: an API on localhost that answers and remembers."""

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

from readcache.testing.hosts import Bash, Compact, Delegate, Edit, Read, Seen, Step, Worker
from tests.real_hosts.scripted_api import Api, ApiHandler, Look

Part = dict[str, Any]
NO_ERROR = re.compile(r"\ANot an error: [^\n]*\n")
REPORT = {"SummaryOfFindings": "done", "ExplorationTrace": [], "RelevantLocations": []}


def say(text: str) -> list[Part]:
    return [{"text": text}]


def use(name: str, **arguments: Any) -> Part:
    return {"functionCall": {"name": name, "args": arguments}}


@dataclass
class Model:
    """What the model does. `seen` is what it was sent, a `Seen` for each step."""

    root: Path
    steps: Sequence[Step]
    seen: list[Seen] = field(default_factory=list)
    requests: list[Part] = field(default_factory=list)
    inner: list[Seen] = field(default_factory=list)
    asked: int = 0  # calls of the last step
    turn: Iterator[tuple[list[Part], int]] | None = None
    part: int = 0  # requests of the sub-agent at work
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, body: Part) -> tuple[list[Part], int]:
        """(what it says, how many tokens it was sent)"""
        with self.lock:
            self.requests.append(body)
            if not body.get("tools"):  # a history to be compressed
                return say("<state_snapshot>A summary of what came before.</state_snapshot>"), 100
            if "complete_task" in json.dumps(body["tools"]):
                return self.answer_in_part(body), 100
            self.turn, self.body = self.turn or self.play(), body
            return next(self.turn)

    def play(self) -> Iterator[tuple[list[Part], int]]:
        for step in self.steps:
            if isinstance(step, (Compact, Worker)):  # the prompt ends, and the next one's first request is looked at
                yield say("done"), 900_000 if isinstance(step, Compact) else 100
                self.look()
                continue
            assert isinstance(step, tuple)
            self.asked, self.inner = len(step), []
            if isinstance(step[0], Delegate):
                self.asked, self.part, self.task = 0, 0, step[0]
                yield [use("invoke_agent", agent_name="codebase_investigator", prompt="look")], 100
            else:
                yield [self.call(call) for call in step], 100
            self.look()
        yield say("done"), 100

    def look(self) -> None:
        """Remembers the request that came after a step."""
        texts, results = texts_of(self.body)
        self.seen.append(Seen(tuple(texts), tuple(results[-self.asked :] if self.asked else ()), tuple(self.inner)))
        self.asked, self.inner = 0, []

    def answer_in_part(self, body: Part) -> list[Part]:
        """What a sub-agent's model says."""
        calls, done = self.task.calls, self.part
        self.part += 1
        if 0 < done <= len(calls):
            texts, results = texts_of(body)
            self.inner.append(Seen(tuple(texts), tuple(results[-1:])))
        return [self.call(calls[done]) if done < len(calls) else use("complete_task", report=REPORT)]

    def call(self, call: object) -> Part:
        if isinstance(call, Bash):
            return use("run_shell_command", command=call.command)
        if isinstance(call, Read):
            more = {} if call.end is None else {"end_line": call.end}
            return use("read_file", file_path=call.path, start_line=call.start, **more)
        assert isinstance(call, Edit)
        path = str(self.root / call.path)
        return use("replace", file_path=path, instruction="edit", old_string=call.old, new_string=call.new)


def texts_of(body: Part) -> tuple[list[str], list[str]]:
    """(every text of a request, those that are results)"""
    texts, results = [json.dumps(body.get("systemInstruction", ""))], []
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part:
                answer = part["functionResponse"]["response"]
                results.append("\n".join(value for value in answer.values() if isinstance(value, str)))
                texts.append(results[-1])
            elif "functionCall" in part:
                texts += [str(value) for value in part["functionCall"]["args"].values()]
            else:
                texts.append(part.get("text", ""))
    # What a command printed begins behind a word of the CLI's.
    return [text.replace("Output: ", "Output:\n", 1) for text in texts], results


class _GenerateContent(ApiHandler):
    """generateContent."""

    def do_POST(self) -> None:
        body = self.body()
        if "countTokens" in self.path:
            text = '{"totalTokens": 100}'
        else:
            parts, size = self.server.model.answer(body)
            candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
            usage = {"promptTokenCount": size, "candidatesTokenCount": 5, "totalTokenCount": size + 5}
            text = json.dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"})
        is_stream = "stream" in self.path
        self.begin("text/event-stream" if is_stream else "application/json")
        self.wfile.write((f"data: {text}\n\n" if is_stream else text).encode())


@dataclass
class GeminiHost:
    """See `HostUnderTest`. `env`: variables; `words`: for `init`; `lost`: the program is gone after `init`."""

    can = frozenset((Bash, Read, Edit, Delegate, Compact, Worker))
    store: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    lost: bool = False
    failures: str = ""  # what was noted
    delay: float = 0.0  # seconds for an answer of the model
    look: Look = lambda *_: None  # at what was sent, what `init` said, and with which variables, while all is there

    def normal(self, text: str) -> str:
        """Without what differs from run to run, and with the output on lines of its own."""
        text = NO_ERROR.sub("", text).replace("<untrusted_context>\nOutput: ", "<untrusted_context>\nOutput:\n", 1)
        text = re.sub(r"(?m)^(Process Group PGID|Background PIDs): .*\n", "", text)
        text = re.sub(r"/\S*/tool-outputs/\S*", "", text)
        return re.sub(r"/with(out)?/", "/project/", text)  # the suite's two projects

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        return self.run(root, steps, on=on).seen

    def run(self, root: Path, steps: Sequence[Step], *, on: bool) -> Model:
        """The model, after the whole conversation: a prompt, and one more for each compression and `Worker`."""
        model = Model(root, steps)
        with tempfile.TemporaryDirectory() as directory, Api(model, _GenerateContent) as api:
            settings = Path(directory) / ".gemini" / "settings.json"
            settings.parent.mkdir()
            auth = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
            # With this, each further prompt compresses what is longer than 1,000 tokens, so only `Compact` sets it.
            low = {"compressionThreshold": 0.001} if any(isinstance(step, Compact) for step in steps) else {}
            settings.write_text(json.dumps({"security": auth, "general": {"enableAutoUpdate": False}, "model": low}))
            env = os.environ | {
                "HOME": directory,
                "GEMINI_CLI_HOME": directory,
                "XDG_STATE_HOME": f"{directory}/state",
                "GEMINI_API_KEY": "none",
                "GEMINI_CLI_NO_RELAUNCH": "1",
                "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{api.server_address[1]}",
                "NO_PROXY": "127.0.0.1",
                **self.env,
            }
            if self.store is not None:
                env["READCACHE_STORE"] = str(self.store)
            api.delay, said = self.delay, ""
            if on:
                init = ["readcache", "init", "gemini", "--user", *self.words]
                said = subprocess.run(init, env=env, cwd=root, check=True, stdout=-1, text=True).stdout
            if self.lost:
                command = re.compile(r'(?<="command": ")[^ "]+')
                settings.write_text(command.sub(f"{directory}/gone/readcache", settings.read_text()))
            gemini = ["gemini", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro"]
            prompts = 1 + sum(isinstance(step, (Compact, Worker)) for step in steps)
            for number in range(prompts):
                words = [*gemini, *(["--resume", "latest"] if number else []), "-p", f"do it {number}"]
                ran = subprocess.run(
                    words,
                    cwd=root,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=300,
                    check=False,
                )
                assert ran.returncode == 0, ran.stderr[-2000:]
            noted = Path(directory) / "state/readcache/failures.log"
            self.failures = noted.read_text() if noted.exists() else ""
            self.look(model.seen, said, env)
        return model
