"""pi: an extension in JavaScript. `extension.js` has its code. `doctor --fire` runs pi with a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from readcache.hosts.host import Entry, Host, InstallTarget, OwnFile, Scripted, chat_answer
from readcache.hosts.plugin import plugin_text


def _files(url: str) -> dict[str, str]:
    limits = {"id": "model", "contextWindow": 100_000, "maxTokens": 8000}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [limits]}
    return {".pi/agent/models.json": json.dumps({"providers": {"scripted": provider}})}


SCRIPTED = Scripted(
    ("pi", "-p", "--provider", "scripted", "--model", "model", "go on"),
    lambda _: {"PI_OFFLINE": "1"},
    _files,
    '"tool_call_id"',
    chat_answer,
)


def _path(target: InstallTarget) -> str:
    """Return the extension's path, in the project or in the agent's directory. pi loads both, if it trusts the
    project."""
    if not target.is_user:
        return os.path.join(target.root, ".pi", "extensions", "readcache.js")
    base = target.environment.get("PI_CODING_AGENT_DIR") or os.path.join(target.home, ".pi", "agent")
    return os.path.join(base, "extensions", "readcache.js")


def _changes(target: InstallTarget) -> Sequence[Entry | OwnFile]:
    return [OwnFile(_path(target), plugin_text(target, "pi", "pi/extension.js"))]


HOST = Host(
    name="pi",
    mode="on",
    why="pi gives its extensions every message list before it is sent, so that nothing can leave unnoticed",
    changes=_changes,
    in_force=lambda target: f"pi loads {_path(target)} when it starts",
    todo=lambda target: "/reload in pi, or start it anew" + ("" if target.is_user else ", in a project that it trusts"),
    scripted=SCRIPTED,
)
