"""The plain loop with Anthropic's package, as it stands on the page."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import anthropic
import httpx2 as httpx

from readcache import Mode, Policy, Session
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Clear, Compact, Edit, Read, Rewind, Seen
from readcache.testing.requests import markers
from tests.real_hosts.examples_page import example
from tests.real_hosts.measured_script import STEPS, measure
from tests.real_hosts.plain_loops import Loop, LoopHost, shell_line

_numbers = count(1)
EDITOR = "str_replace_based_edit_tool"


class Messages:
    """The Messages API: what the model says is in `calls`."""

    code = example("Anthropic: a plain loop")

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[Any] = []
        transport = httpx.MockTransport(self.answer)
        self.client = anthropic.Anthropic(api_key="none", http_client=httpx.Client(transport=transport))

    def work(self, session: Session, messages: list[Any]) -> list[Any]:
        """The example's own code."""
        return list(self.code.work(self.client, session, messages))

    def answer(self, request: httpx.Request) -> httpx.Response:
        """What the API answers."""
        self.requests.append(json.loads(request.content)["messages"])
        calls, self.calls = self.calls, []
        blocks = [
            {"type": "tool_use", "id": f"toolu_{next(_numbers)}", "name": n, "input": given} for n, given in calls
        ]
        known = {"type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "stop_reason": "end_turn"}
        content = blocks or [{"type": "text", "text": "done"}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx.Response(200, json={"id": f"msg_{next(_numbers)}", **known, "content": content, "usage": usage})

    def call(self, use: Bash | Read | Edit) -> tuple[str, dict[str, Any]]:
        """The call of a tool."""
        if isinstance(use, Bash):
            return "bash", {"command": shell_line(use)}
        if isinstance(use, Read):
            span = {"view_range": [use.start, use.end or -1]} if (use.start, use.end) != (1, None) else {}
            return EDITOR, {"command": "view", "path": use.path, **span}
        return EDITOR, {"command": "str_replace", "path": use.path, "old_str": use.old, "new_str": use.new}

    def is_result(self, message: dict[str, Any]) -> bool:
        """True for results of tools."""
        return isinstance(message["content"], list) and any(_is_result(block) for block in message["content"])

    def cleared(self, message: dict[str, Any]) -> dict[str, Any]:
        """The message without its texts."""
        return {**message, "content": [{**block, "content": "[cleared]"} for block in message["content"]]}

    def seen(self, request: list[dict[str, Any]], calls: int) -> Seen:
        """A request in the suite's words."""
        blocks: list[Any] = []
        for message in request:
            content = message["content"]
            blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [block for block in blocks if _is_result(block)][-calls:] if calls else []
        texts = tuple(_text(block) for block in blocks if not any(block is result for result in results))
        return Seen(texts, tuple(map(_text, results)))


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _text(block: dict[str, Any]) -> str:
    if block["type"] == "tool_use":
        return "\n".join(map(str, block["input"].values()))
    return str(block.get("text", block.get("content", "")))


class TestMessages(Conformance):
    host = LoopHost(frozenset((Bash, Read, Edit, Compact, Clear, Rewind)), Messages)


def test_the_editor_of_the_example_edits(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make_project(root)
    talk, session = Messages(), Session(root)
    text = "".join(f"line {n} of a new file with some words in it\n" for n in range(30))
    talk.calls = [(EDITOR, {"command": "create", "path": "new.txt", "file_text": text})]
    messages = talk.work(session, [{"role": "user", "content": "go on"}])
    talk.calls = [("bash", {"command": "cat new.txt"})]
    messages = talk.work(session, messages)
    assert markers(talk.seen(talk.requests[-1], 1).results[0]), "it wrote the text itself"
    for given in (
        {"command": "insert", "insert_line": 1, "insert_text": "inserted\n"},
        {"command": "str_replace", "old_str": "line 29 ", "new_str": "line XXIX "},
        {"command": "str_replace", "old_str": "line", "new_str": "row"},
        {"command": "view"},
    ):
        talk.calls = [(EDITOR, {**given, "path": "new.txt"})]
        messages = talk.work(session, messages)
    assert (root / "new.txt").read_text() == text.replace("line 1 ", "inserted\nline 1 ").replace("29", "XXIX")
    shown = talk.seen(talk.requests[-1], 2).results
    assert "exactly once" in shown[0]
    assert "inserted" in shown[1]
    assert "XXIX" in shown[1]


def test_a_directory_is_listed(tmp_path: Path) -> None:
    make_project(tmp_path / "project")
    talk = Messages()
    talk.calls = [(EDITOR, {"command": "view", "path": "."}), (EDITOR, {"command": "view", "path": "nowhere"})]
    talk.work(Session(tmp_path / "project"), [{"role": "user", "content": "go on"}])
    listed, failed = talk.requests[-1][-1]["content"]
    assert listed["content"] == "crlf.txt\nlike.txt\nlong.txt\nshop.py"
    assert failed["is_error"]


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> int:
        talk = Messages()
        Loop(talk, Session(root, policy=Policy(mode=Mode.ON if on else Mode.OFF))).converse(STEPS)
        sent = [message for request in talk.requests for message in request if talk.is_result(message)]
        return sum(len(_text(block)) for message in sent for block in message["content"])

    measure("anthropic-loop", "anthropic", run_steps, tmp_path)
