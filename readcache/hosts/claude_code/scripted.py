"""Claude Code with a scripted model: the Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator

from readcache.hosts.scripted import Json, Scripted, stream

_QUIET = dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"), "1")


def _answer(_: str, number: int, command: str) -> str:
    block: Json = {"type": "text", "text": "done"}
    if command:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}
    usage = {"input_tokens": 100, "output_tokens": 10}
    message: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "usage": usage}
    message |= {"stop_reason": "tool_use" if command else "end_turn", "stop_sequence": None, "content": [block]}
    return stream(_events(message, block))


def _events(message: Json, block: Json) -> Iterator[Json]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block.get("text")}
    if "input" in block:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": message["usage"]}
    yield {"type": "message_stop"}


SCRIPTED = Scripted(
    ("claude", "-p", "go on", "--allowedTools", "Bash(cat:*)"),
    lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "READCACHE_SERVER": "on", **_QUIET},
    lambda _: {},
    '"tool_result"',
    _answer,
    seconds=2.0,  # for the plugin to start its server, and for Claude Code to record each request
)
