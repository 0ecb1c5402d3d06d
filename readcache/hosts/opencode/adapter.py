"""opencode: a plugin in JavaScript. `plugin.js` has its code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.hosts.host import Entry, Host, InstallTarget, OwnFile
from readcache.hosts.plugin import plugin_text

if TYPE_CHECKING:
    from readcache.hosts.scripted import Scripted


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

    def scripted() -> Scripted:
        from readcache.hosts.opencode.scripted import scripted_like_opencode

        return scripted_like_opencode(name)

    return Host(
        name=name,
        mode="on",
        why=f"{name} gives its plugins every message list before it is sent, so that nothing can leave unnoticed",
        changes=changes,
        in_force=lambda target: f"{name} loads {path(target)} when it starts",
        todo=lambda _: f"start {name} anew: it loads plugins when it starts",
        scripted=scripted,
    )


HOST = host_like_opencode("opencode")
