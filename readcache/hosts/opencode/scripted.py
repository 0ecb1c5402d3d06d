"""opencode with a model that is a script."""

from __future__ import annotations

import json

from readcache.hosts.scripted import Scripted, chat_answer


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


SCRIPTED = Scripted(
    ("opencode", "run", "--model", "scripted/model", "go on"),
    _environment,
    lambda _: {},
    '"tool_call_id"',
    chat_answer,
)
