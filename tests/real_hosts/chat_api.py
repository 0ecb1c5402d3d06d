"""A scripted model behind OpenAI's chat API on localhost: what hosts were sent is what they really sent over HTTP.

with ScriptedModel() as model:
    model.says(model.call("bash", {"command": "ls"}))    # the answers, in order
    ...                                                  # the host talks to model.url
    model.requests[0]                                    # the messages of the first request
"""

from __future__ import annotations

import http.server
import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

Json = dict[str, Any]


class ScriptedModel:
    """A model that says what it was told to say, and "DONE" when there is no more. `summary`: what it says where it is
    given no tools, or no conversation; such requests are not kept.
    `window`: it counts tokens, and refuses requests of more; 0: each request has 100."""

    def __init__(self, *, summary: str = "", window: int = 0) -> None:
        self.requests: list[list[Json]] = []
        self._window = window
        self._summary = summary
        self._answers: deque[Json] = deque()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._calls = 0

    @property
    def url(self) -> str:
        """The base URL of the API."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def call(self, name: str, arguments: Mapping[str, Any]) -> Json:
        """One tool call, with an id of its own."""
        self._calls += 1
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": f"call_{self._calls:04}", "type": "function", "function": function}

    def says(self, *calls: Json, text: str = "") -> None:
        """The next answer: these calls at once, or a text."""
        self._answers.append({"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})})

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()  # seconds to its end
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: Json) -> Json:
        if "input" in request:
            return self._responses_answer(request)
        prompt = len(json.dumps(request["messages"])) // 4 if self._window else 100
        if 0 < self._window < prompt:
            said = f"This model's maximum context length is {self._window} tokens, your messages have {prompt}"
            return {"error": {"message": said, "type": "invalid_request_error", "code": "context_length_exceeded"}}
        if self._summary and (not request.get("tools") or len(request["messages"]) == 1):
            message: Json = {"role": "assistant", "content": self._summary}
        else:
            self.requests.append(request["messages"])
            message = self._answers.popleft() if self._answers else {"role": "assistant", "content": "DONE"}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        name = f"answer_{len(self.requests)}"
        return {
            "id": name,
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }

    def _responses_answer(self, request: Json) -> Json:
        """The same in the shape of the Responses API."""
        self.requests.append(request["input"])
        message: Json = self._answers.popleft() if self._answers else {"content": "DONE"}
        said = {"type": "output_text", "text": message["content"], "annotations": []}
        output: list[Json] = [
            {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [said]}
        ]
        for call in message.get("tool_calls", []):
            item = {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], "status": "completed"}
            output.append({**item, **call["function"]})
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        fixed: Json = {
            "id": "r",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": "m",
            "error": None,
        }
        return {
            **fixed,
            "output": output,
            "usage": usage,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # one packet an answer: no waiting for an acknowledgement

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                given = model._answer(body)
                answer = json.dumps(given).encode()
                self.send_response(400 if given.keys() == {"error"} else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def texts_of(messages: list[Json]) -> Iterator[tuple[str, str]]:
    """(role, text) of everything in a request: contents, and the arguments of calls."""
    for message in messages:
        role = message.get("role") or ("tool" if message["type"] == "function_call_output" else "assistant")
        content = message.get("content") or message.get("output") or ""
        for part in [content] if isinstance(content, str) else content:
            yield role, part if isinstance(part, str) else part.get("text", "")
        for call in [*(message.get("tool_calls") or []), *([{"function": message}] if "arguments" in message else [])]:
            yield role, "\n".join(map(str, json.loads(call["function"]["arguments"]).values()))


def result_chars(requests: list[list[Json]]) -> int:
    """Characters of all tool results in all requests."""
    return sum(len(text) for messages in requests for role, text in texts_of(messages) if role == "tool")
