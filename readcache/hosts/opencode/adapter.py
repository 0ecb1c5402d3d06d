"""opencode: a plugin in JavaScript, which asks `readcache serve`. What it does stands in `plugin.js`."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from importlib.resources import files

from readcache import ReadcacheError
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
    settings = json.dumps({"program": where.program, "mode": where.mode, "policy": where.policy})
    made = "// Made by `readcache init opencode`, removed by uninit; what is changed here is lost.\n"
    return made + client + "\n" + _SETTINGS.sub(lambda _: f"const SETTINGS = {settings}", plugin, count=1)


def _changes(where: Where) -> Sequence[Entry | OwnFile]:
    return [OwnFile(_path(where), _text(where))]


def _in_force(where: Where) -> str:
    """Is the plugin there, as this version writes it, and can it start its server?"""
    path = _path(where)
    try:
        with open(path, encoding="utf-8") as file:
            found = file.read()
    except OSError as error:
        raise ReadcacheError(f"{path}: {error.strerror or error}; run `readcache init opencode`") from None
    line = _SETTINGS.search(found)
    if line is None or _SETTINGS.sub("", found) != _SETTINGS.sub("", _text(where)):
        raise ReadcacheError(f"{path} is not this version's plugin: run `readcache init opencode` again")
    settings = json.loads(line[0].partition("= ")[2])
    if settings["mode"] == "off":
        raise ReadcacheError(f"{path} says that readcache is off: run `readcache init opencode`")
    if shutil.which(settings["program"][0]) is None:
        raise ReadcacheError(
            f"{path} starts {settings['program'][0]}, which is not there: run `readcache init opencode`"
        )
    return f"{path}: this version's plugin, {settings['mode']}; opencode loads it when it starts"


HOST = Host(
    name="opencode",
    mode="on",
    why="opencode gives its plugins every message list before it is sent, so that nothing can leave unnoticed",
    changes=_changes,
    in_force=_in_force,
)
