"""opencode: a plugin in JavaScript. `plugin.js` has its code. `doctor --fire` runs it with a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from readcache.hosts.host import Entry, Host, InstallTarget, OwnFile, Scripted, chat_answer
from readcache.hosts.plugin import plugin_text


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


def host_like_opencode(name: str) -> Host:
    """Return the host for opencode, or for a fork of it, which uses its own name in its directories."""

    def path(target: InstallTarget) -> str:
        """Return the plugin's path, in the project or in the host's own configuration directory. The host loads
        both."""
        if not target.is_user:
            return os.path.join(target.root, f".{name}", "plugin", "readcache.js")
        base = target.environment.get("XDG_CONFIG_HOME") or os.path.join(target.home, ".config")
        return os.path.join(base, name, "plugin", "readcache.js")

    def changes(target: InstallTarget) -> Sequence[Entry | OwnFile]:
        return [OwnFile(path(target), plugin_text(target, name, "opencode/plugin.js"))]

    return Host(
        name=name,
        mode="on",
        why=f"{name} gives its plugins every message list before it is sent, so that nothing can leave unnoticed",
        changes=changes,
        in_force=lambda target: f"{name} loads {path(target)} when it starts",
        todo=lambda _: f"start {name} anew: it loads plugins when it starts",
        scripted=scripted_like_opencode(name),
    )


HOST = host_like_opencode("opencode")
