"""Codex CLI with a scripted model: the Responses API."""

from __future__ import annotations

import json

from readcache.hosts.scripted import Json, Scripted, stream

_CONFIG = """model = "gpt-5-codex"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{}/v1"
wire_api = "responses"
"""


def _answer(_: str, number: int, command: str) -> str:
    item: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
    if command:
        arguments = json.dumps({"cmd": command})
        item = {"type": "function_call", "name": "exec_command", "call_id": f"call_{number}", "arguments": arguments}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    done = {"id": "r", "output": [item], "usage": usage | details}
    return stream(
        [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
    )


SCRIPTED = Scripted(
    # Codex cannot set up its sandbox everywhere, and it runs only the `cat` of this test. `in_force` checks trust.
    (
        *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
        *("--sandbox", "danger-full-access", "go on"),
    ),
    lambda _: {},
    lambda url: {".codex/config.toml": _CONFIG.format(url)},
    '"function_call_output"',
    _answer,
)
