"""The plain loops with OpenAI's package, as they stand on the page."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import httpx2 as httpx
import openai
import pytest

from readcache import Mode, Policy, Session
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Clear, Compact, Rewind, Seen
from readcache.testing.requests import markers
from tests.real_hosts.examples_page import example
from tests.real_hosts.measured_script import STEPS, measure, with_a_shell_alone
from tests.real_hosts.plain_loops import Loop, LoopHost, shell_line

_numbers = count(1)
CAN = frozenset((Bash, Compact, Clear, Rewind))


class Chat:
    """Chat completions: what the model says is in `calls`."""

    code = example("OpenAI: a plain loop, chat completions")
    result = ("role", "tool", "content")

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.requests: list[Any] = []
        transport = httpx.MockTransport(self.answer)
        self.client = openai.OpenAI(api_key="none", http_client=httpx.Client(transport=transport))

    def work(self, session: Session, messages: list[Any]) -> list[Any]:
        """The example's own code."""
        messages = self.code.work(self.client, session, messages)
        return [m if isinstance(m, dict) else m.model_dump(exclude_none=True) for m in messages]

    def answer(self, request: httpx.Request) -> httpx.Response:
        """What the API answers."""
        given = json.loads(request.content)
        self.requests.append(given.get("messages") or given.get("input"))
        calls, self.calls = self.calls, []
        return httpx.Response(200, json=self.said([(f"call_{next(_numbers)}", command) for command in calls]))

    def said(self, calls: list[tuple[str, str]]) -> dict[str, Any]:
        """A completion with these calls."""
        made = [
            {
                "id": name,
                "type": "function",
                "function": {"name": "bash", "arguments": json.dumps({"command": command})},
            }
            for name, command in calls
        ]
        message: dict[str, Any] = {"role": "assistant", "content": None if made else "done"}
        choice = {"index": 0, "finish_reason": "stop", "message": message | ({"tool_calls": made} if made else {})}
        return {
            "id": f"chat-{next(_numbers)}",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
        }

    def call(self, use: Bash) -> str:
        """The command."""
        return shell_line(use)

    def is_result(self, message: dict[str, Any]) -> bool:
        """True for the result of a tool."""
        key, value, _ = self.result
        return message.get(key) == value

    def cleared(self, message: dict[str, Any]) -> dict[str, Any]:
        """The message without its text."""
        return {**message, self.result[2]: "[cleared]"}

    def seen(self, request: list[dict[str, Any]], calls: int) -> Seen:
        """A request in the suite's words."""
        results = [message for message in request if self.is_result(message)][-calls:] if calls else []
        texts = tuple(self.text_of(message) for message in request if message not in results)
        return Seen(texts, tuple(message[self.result[2]] for message in results))

    def text_of(self, message: dict[str, Any]) -> str:
        """What a model reads of it."""
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        called = [json.loads(call["arguments"])["command"] for call in (*calls, message) if "arguments" in call]
        text = message.get("content") or message.get("output") or ""
        return "\n".join([text if isinstance(text, str) else json.dumps(text), *called])


class Responses(Chat):
    """The Responses API."""

    code = example("OpenAI: a plain loop, Responses")
    result = ("type", "function_call_output", "output")

    def said(self, calls: list[tuple[str, str]]) -> dict[str, Any]:
        """A response with these calls."""
        text = {"type": "output_text", "text": "done", "annotations": []}
        words = {
            "type": "message",
            "id": f"msg_{next(_numbers)}",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
        made = [
            {
                "type": "function_call",
                "id": f"fc_{name}",
                "call_id": name,
                "name": "bash",
                "arguments": json.dumps({"command": command}),
                "status": "completed",
            }
            for name, command in calls
        ]
        known = {"object": "response", "created_at": 0, "model": "m", "parallel_tool_calls": True, "tools": []}
        return {"id": f"resp_{next(_numbers)}", **known, "tool_choice": "auto", "output": made or [words]}


class TestChatCompletions(Conformance):
    host = LoopHost(CAN, Chat)


class TestResponses(Conformance):
    host = LoopHost(CAN, Responses)


def test_what_the_page_says_of_a_list_that_is_shortened_by_the_user_holds(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    for talk in (Chat(), Responses()):
        session = Session(tmp_path / "p")
        messages: list[Any] = [{"role": "user", "content": "go on"}]
        for command in ("cat shop.py", "head -40 shop.py"):
            talk.calls = [command]
            messages = talk.work(session, messages)
        assert [len(markers(talk.text_of(message))) for message in messages if talk.is_result(message)] == [0, 1]
        first = next(at for at, message in enumerate(messages) if talk.is_result(message))
        talk.work(session, [*messages[:first], talk.cleared(messages[first]), *messages[first + 1 :]])
        sent = "\n".join(talk.text_of(message) for message in talk.requests[-1])
        assert not [marker for marker in markers(sent) if "GONE" not in marker]


@pytest.mark.parametrize(("name", "api"), [("openai-chat-loop", Chat), ("openai-responses-loop", Responses)])
def test_what_it_saves_is_measured(name: str, api: type[Chat], tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> int:
        talk = api()
        Loop(talk, Session(root, policy=Policy(mode=Mode.ON if on else Mode.OFF))).converse(
            [with_a_shell_alone(step) for step in STEPS]
        )
        sent = [message for request in talk.requests for message in request if talk.is_result(message)]
        return sum(len(talk.text_of(message)) for message in sent)

    measure(name, "openai", run_steps, tmp_path)
