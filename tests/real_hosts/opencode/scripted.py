"""opencode with a scripted model: a chat-completions API on localhost, and an `opencode serve` that talks to it."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from readcache.hosts import find_host
from readcache.hosts.host import InstallTarget, OwnFile

Message = dict[str, Any]
MODEL = {"providerID": "scripted", "modelID": "model"}


class Model(http.server.ThreadingHTTPServer):
    """Answers each request with what `script` makes of it: {"content"} or {"tool_calls": [(id, name, arguments)]}."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: Callable[[Message], Message] = lambda _: {"content": "nothing"}
        self.delay = 0.0  # seconds for an answer
        self.prompt = 100  # tokens that it says a request has
        self.compacts = False  # does opencode compact by itself, where a request is too long?
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """The base of the API."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Model

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(self.server.delay)
        with self.server.lock:
            answer = self.server.script(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        calls = [
            {"index": k, "id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
            for k, (name, tool, given) in enumerate(answer.get("tool_calls", []))
        ]
        delta = {"role": "assistant", "content": answer.get("content", ""), **({"tool_calls": calls} if calls else {})}
        self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]})
        prompt = self.server.prompt
        usage = {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5}
        self._send({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, event: Message) -> None:
        whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "model", **event}
        self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())


def install(
    directory: Path, program: Sequence[str], *, is_user: bool, mode: str = "on", host: str = "opencode"
) -> Path:
    """Writes what `readcache init` does, for the project `directory` or the user whose home that is."""
    target = InstallTarget(str(directory), str(directory), is_user, tuple(program), mode, "default")
    (change,) = find_host(host).changes(target)
    assert isinstance(change, OwnFile)
    path = Path(change.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(change.text, encoding="utf-8")
    return path


def load(root: Path, program: Sequence[str], *, mode: str = "on") -> Path:
    """The same plugin, as a line of the project's opencode.json: where there is a directory of plugins, opencode first
    installs a package of its own into it, and waits."""
    path = install(root / "_plugin", program, is_user=True, mode=mode)
    (root / "opencode.json").write_text(json.dumps({"plugin": [str(path)]}))
    return path


class Opencode:
    """A running `opencode serve`, as one of its clients sees it."""

    def __init__(self, url: str, root: Path, model: Model, home: Path) -> None:
        self.url, self.root, self.model, self.home = url, root, model, home

    def at(self, root: Path) -> Opencode:
        """The same server, for another project."""
        return Opencode(self.url, root, self.model, self.home)

    def ask(self, path: str, body: Message | None = None, method: str = "") -> Any:
        """One request to its API."""
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.url}{path}?directory={urllib.parse.quote(str(self.root))}"
        request = urllib.request.Request(url, data, {"content-type": "application/json"})
        request.method = method or ("GET" if body is None else "POST")
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.loads(answer.read() or b"null")

    def begin(self) -> str:
        """A new session."""
        return str(self.ask("/session", {})["id"])

    def prompt(self, session: str, text: str) -> Message:
        """A turn: returns when the model has ended it."""
        body = {"model": MODEL, "parts": [{"type": "text", "text": text}]}
        found: Message = self.ask(f"/session/{session}/message", body)
        assert not found["info"].get("error"), found["info"]["error"]
        return found

    def messages(self, session: str) -> list[Message]:
        """What it keeps of the session."""
        found: list[Message] = self.ask(f"/session/{session}/message")
        return found

    def parts(self, session: str) -> dict[str, Message]:
        """The tool calls that it keeps, by id."""
        parts = (part for message in self.messages(session) for part in message["parts"])
        return {part["callID"]: part for part in parts if part["type"] == "tool"}


@contextmanager
def opencode(home: Path, model: Model, root: Path, program: str = "opencode", **env: str) -> Iterator[Opencode]:
    """opencode or a fork of it, with nothing but the scripted model configured."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.url, "apiKey": "none"},
        "models": {"model": {"name": "model", "limit": {"context": 1_000_000, "output": 8000}}},
    }
    config = {
        "provider": {"scripted": provider},
        "model": "scripted/model",
        "small_model": "scripted/model",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "allow"},
        "lsp": False,
        "formatter": False,
        "snapshot": False,
        "compaction": {"auto": model.compacts, "prune": True},
    }
    home.mkdir(exist_ok=True, parents=True)
    root.mkdir(exist_ok=True, parents=True)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        f"{program.upper()}_CONFIG_CONTENT": json.dumps(config),
        f"{program.upper()}_DISABLE_MODELS_FETCH": "1",
        f"{program.upper()}_DISABLE_LSP_DOWNLOAD": "1",
        f"{program.upper()}_DISABLE_AUTOUPDATE": "1",
        **env,
    }
    command = [program, "serve", "--port", "0", "--hostname", "127.0.0.1"]
    with (
        (home / "log").open("ab") as log,
        subprocess.Popen(command, cwd=root, env=variables, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            found = next(filter(None, (re.search(r"http://\S+", line) for line in process.stdout)))
            yield Opencode(found[0], root, model, home)
        finally:
            process.terminate()
            process.wait(20)
