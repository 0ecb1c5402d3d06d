"""opencode: a plugin in JavaScript. What it does stands in `plugin.js`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.hosts.host import Entry, Host, OwnFile, Where
from readcache.hosts.plugin import plugin_text

if TYPE_CHECKING:
    from readcache.hosts.scripted import Scripted


def _path(where: Where) -> str:
    """Where opencode looks for plugins: in each project, and in its own configuration."""
    if not where.is_user:
        return os.path.join(where.root, ".opencode", "plugin", "readcache.js")
    base = where.environment.get("XDG_CONFIG_HOME") or os.path.join(where.home, ".config")
    return os.path.join(base, "opencode", "plugin", "readcache.js")


def _changes(where: Where) -> Sequence[Entry | OwnFile]:
    return [OwnFile(_path(where), plugin_text(where, "opencode", "opencode/plugin.js"))]


def _scripted() -> Scripted:
    from readcache.hosts.opencode.scripted import SCRIPTED

    return SCRIPTED


HOST = Host(
    name="opencode",
    mode="on",
    why="opencode gives its plugins every message list before it is sent, so that nothing can leave unnoticed",
    changes=_changes,
    in_force=lambda where: f"opencode loads {_path(where)} when it starts",
    todo=lambda _: "start opencode anew: it loads plugins when it starts",
    scripted=_scripted,
)
