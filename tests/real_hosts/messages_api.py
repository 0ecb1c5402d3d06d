"""A scripted Messages API on localhost, as Claude Code calls it, and what its model was sent."""

from __future__ import annotations

import http.server
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from readcache.testing.hosts import Bash, Delegate, Edit, Read, Seen, ToolUse

Body = dict[str, Any]
DONE = [{"type": "text", "text": "done"}]
SUMMARY = [{"type": "text", "text": "<summary>The files were looked at.</summary>"}]


class ScriptedModel:
    """Makes the calls that it was told to, one message each; then it is done. `requests`: what it was sent."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.requests: list[Body] = []
        self.prompt = 1000  # tokens that it says each request has
        self.before_answer: Callable[[], None] | None = None  # called once
        self.delay = 0.0  # seconds that it takes for an answer
        self.waited = 0.0  # seconds that it took for all of them
        self._waiting: list[list[Body]] = []
        self._delegates: dict[str, list[list[Body]]] = {}
        self.inner: dict[str, list[Body]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def calls(self, calls: Sequence[ToolUse]) -> list[str]:
        """Lets it make these calls at once; gives their ids."""
        blocks = [self._block(call) for call in calls]
        self.blocks(blocks)
        return [block["id"] for block in blocks]

    def blocks(self, blocks: list[Body]) -> None:
        """Lets it answer these blocks."""
        self._waiting.append(blocks)

    def fork(self, calls: Sequence[Bash | Read], beside: Sequence[Bash | Read] = ()) -> tuple[list[Body], list[str]]:
        """Lets it fork an agent that makes these calls one by one: what that one will be sent, and the calls' ids.
        `beside`: calls that it makes at once with the fork."""
        block = self._block(Delegate(tuple(calls)))
        block["input"] |= {"subagent_type": "fork", "run_in_background": True}
        self.blocks([*map(self._block, beside), block])
        name = block["input"]["prompt"]
        return self.inner[name], [inner["id"] for blocks in self._delegates[name] for inner in blocks]

    def answer(self, body: Body) -> list[Body]:
        """The blocks of the next answer."""
        before, self.before_answer = self.before_answer, None
        began = time.monotonic()
        if before is not None:
            before()
        time.sleep(self.delay)
        self.waited += time.monotonic() - began
        with self._lock:
            forked = json.dumps(body["messages"]).partition("that fork is you")[2]  # by Claude Code
            first, last = forked or json.dumps(body["messages"][0]), json.dumps(body["messages"][-1])
            if not any(tool.get("name") == "Bash" for tool in body.get("tools", ())):
                return DONE
            if "detailed summary" in last:
                return SUMMARY
            if name := re.search(r"DELEGATE-\d+", first):
                self.inner[name[0]].append(body)
                return self._delegates[name[0]].pop(0) if self._delegates[name[0]] else DONE
            self.requests.append(body)
            return self._waiting.pop(0) if self._waiting else DONE

    def _block(self, call: ToolUse) -> Body:
        self._count += 1
        number = f"toolu_{self._count:06}"  # the calls of a sub-agent come next
        name, given = self._tool(call)
        return {"type": "tool_use", "id": number, "name": name, "input": given}

    def _tool(self, call: ToolUse) -> tuple[str, Body]:
        if isinstance(call, Bash):
            return "Bash", {"command": call.command} | ({"timeout": int(1000 * call.timeout)} if call.timeout else {})
        if isinstance(call, Read):
            lines = {} if call.end is None else {"limit": call.end - call.start + 1}
            return "Read", {"file_path": f"{self.root}/{call.path}", "offset": call.start} | lines
        if isinstance(call, Edit):
            return "Edit", {"file_path": f"{self.root}/{call.path}", "old_string": call.old, "new_string": call.new}
        name = f"DELEGATE-{self._count}"
        self._delegates[name] = [[self._block(inner)] for inner in call.calls]
        self.inner[name] = []
        words = {"description": "look", "prompt": name, "subagent_type": "general-purpose"}
        return "Agent", words | {"run_in_background": False}


def seen_in(body: Body, ids: Sequence[str], inner: Sequence[Seen] = ()) -> Seen:
    """What a request shows, and which of it are the results of these calls."""
    blocks = [block for message in body["messages"] for block in blocks_of(message)]
    results = {block["tool_use_id"]: result_text(block.get("content")) for block in blocks if "tool_use_id" in block}
    texts = [text_in(body.get("system"))] + [text_in(block) for block in blocks if block.get("tool_use_id") not in ids]
    return Seen(tuple(texts), tuple(results[name] for name in ids), tuple(inner))


def blocks_of(message: Body) -> list[Body]:
    """The blocks of a message."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def result_text(content: Any) -> str:
    """What the model reads of a result."""
    blocks = [{"text": content}] if isinstance(content, str) else content or ()
    return "\n".join(block["text"] for block in blocks if "text" in block)


def text_in(value: Any) -> str:
    """All strings inside a value, a line each at least."""
    if isinstance(value, str):
        return value
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "\n".join(filter(None, map(text_in, inner)))


def result_chars(body: Body) -> int:
    """Characters of all tool results in a request."""
    blocks = [block for message in body["messages"] for block in blocks_of(message)]
    return sum(len(json.dumps(block["content"])) for block in blocks if block.get("type") == "tool_result")


@contextmanager
def messages_api(model: ScriptedModel) -> Iterator[str]:
    """Serves the model; gives the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(model))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(model: ScriptedModel) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send({})

        do_HEAD = do_GET

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if "count_tokens" in self.path or not self.path.startswith("/v1/messages"):
                self._send({"input_tokens": 1000})
                return
            blocks = model.answer(body)
            self._stream(blocks) if body.get("stream") else self._send(_message(blocks, model.prompt))

        def _send(self, what: Body) -> None:
            data = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, blocks: list[Body]) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in _events(blocks, model.prompt):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    return Handler


_COUNT = iter(range(1, 1_000_000))


def _message(blocks: list[Body], prompt: int) -> Body:
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = {"input_tokens": prompt, "output_tokens": 10}
    kind = {"id": f"msg_{next(_COUNT):024}", "type": "message", "role": "assistant", "model": "scripted"}
    return {**kind, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _events(blocks: list[Body], prompt: int) -> Iterator[Body]:
    whole = _message(blocks, prompt)
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": whole["usage"]}
    yield {"type": "message_stop"}
