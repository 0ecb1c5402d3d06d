"""opencode: a plugin in JavaScript, which asks `readcache serve`. What it does stands in `plugin.js`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from importlib.resources import files

from readcache.hosts.host import Entry, Host, OwnFile, Where

_SETTINGS = re.compile(r"^const SETTINGS = .*$", re.MULTILINE)


def _path(where: Where) -> str:
    """Where opencode looks for plugins: in each project, and in its own configuration."""
    if not where.is_user:
        return os.path.join(where.root, ".opencode", "plugin", "readcache.js")
    base = where.environment.get("XDG_CONFIG_HOME") or os.path.join(where.home, ".config")
    return os.path.join(base, "opencode", "plugin", "readcache.js")


def _text(where: Where) -> str:
    parts = files("readcache.serve") / "client.js", files("readcache.hosts") / "opencode/plugin.js"
    client, plugin = (part.read_text(encoding="utf-8") for part in parts)
    settings = json.dumps({"program": where.program, "mode": where.mode, "options": where.policy_words()})
    made = "// Made by `readcache init opencode`, removed by uninit; what is changed here is lost.\n"
    return made + client + "\n" + _SETTINGS.sub(lambda _: f"const SETTINGS = {settings}", plugin, count=1)


def _changes(where: Where) -> Sequence[Entry | OwnFile]:
    return [OwnFile(_path(where), _text(where))]


HOST = Host(
    name="opencode",
    mode="on",
    why="opencode gives its plugins every message list before it is sent, so that nothing can leave unnoticed",
    changes=_changes,
    in_force=lambda where: f"opencode loads {_path(where)} when it starts",
    todo=lambda _: "start opencode anew: it loads plugins when it starts",
)
