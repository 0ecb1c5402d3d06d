"""opencode, or a fork of it, with a scripted model."""

from __future__ import annotations

import json

from readcache.hosts.scripted import Scripted, chat_answer


def scripted_like_opencode(program: str) -> Scripted:
    """Return how to run `program`, which reads its settings from environment variables whose names start with its own
    name."""

    def environment(url: str) -> dict[str, str]:
        model = {"name": "model", "limit": {"context": 100_000, "output": 8000}}
        options = {"baseURL": f"{url}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"model": model}}
        named = dict.fromkeys(("model", "small_model"), "scripted/model")
        off = {"autoupdate": False, "share": "disabled", "lsp": False, "formatter": False, "snapshot": False}
        config = {"provider": {"scripted": provider}, **named, **off, "permission": {"bash": "allow"}}
        # It installs a package of its own beside plugins, which the readcache plugin does not need.
        offline = {"npm_config_offline": "true", f"{program.upper()}_DISABLE_MODELS_FETCH": "1"}
        return {f"{program.upper()}_CONFIG_CONTENT": json.dumps(config), **offline}

    words = (program, "run", "--model", "scripted/model", "go on")
    return Scripted(words, environment, lambda _: {}, '"tool_call_id"', chat_answer)
