"""pi: an extension in JavaScript. `extension.js` has its code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.hosts.host import Entry, Host, InstallTarget, OwnFile
from readcache.hosts.plugin import plugin_text

if TYPE_CHECKING:
    from readcache.hosts.scripted import Scripted


def _path(target: InstallTarget) -> str:
    """Return the extension's path, in the project or in the agent's directory. pi loads both, if it trusts the
    project."""
    if not target.is_user:
        return os.path.join(target.root, ".pi", "extensions", "readcache.js")
    base = target.environment.get("PI_CODING_AGENT_DIR") or os.path.join(target.home, ".pi", "agent")
    return os.path.join(base, "extensions", "readcache.js")


def _changes(target: InstallTarget) -> Sequence[Entry | OwnFile]:
    return [OwnFile(_path(target), plugin_text(target, "pi", "pi/extension.js"))]


def _scripted() -> Scripted:
    from readcache.hosts.pi.scripted import SCRIPTED

    return SCRIPTED


HOST = Host(
    name="pi",
    mode="on",
    why="pi gives its extensions every message list before it is sent, so that nothing can leave unnoticed",
    changes=_changes,
    in_force=lambda target: f"pi loads {_path(target)} when it starts",
    todo=lambda target: "/reload in pi, or start it anew" + ("" if target.is_user else ", in a project that it trusts"),
    scripted=_scripted,
)
