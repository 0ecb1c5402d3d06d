"""opencode with a model that is a script: chat completions."""

from __future__ import annotations

import json

from readcache.hosts.scripted import Json, Scripted, stream


def _environment(url: str) -> dict[str, str]:
    model = {"name": "model", "limit": {"context": 100_000, "output": 8000}}
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"model": model}}
    named = dict.fromkeys(("model", "small_model"), "scripted/model")
    off = {"autoupdate": False, "share": "disabled", "lsp": False, "formatter": False, "snapshot": False}
    config = {"provider": {"scripted": provider}, **named, **off, "permission": {"bash": "allow"}}
    # Beside plugins it installs a package of its own, which ours does without.
    offline = {"npm_config_offline": "true", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), **offline}


def _answer(_: str, number: int, command: str) -> str:
    function = {"name": "bash", "arguments": json.dumps({"command": command, "description": "look"})}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    said: Json = {"tool_calls": [call]} if command else {"content": "done"}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    choices: list[list[Json]] = [
        [{"index": 0, "delta": {"role": "assistant", **said}, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if command else "stop"}],
        [],
    ]
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "model"}
    return stream(
        ({**whole, "choices": one, **({} if one else {"usage": usage})} for one in choices), "data: [DONE]\n\n"
    )


SCRIPTED = Scripted(
    ("opencode", "run", "--model", "scripted/model", "go on"),
    _environment,
    lambda _: {},
    '"tool_call_id"',
    _answer,
)
