"""Plugins in JavaScript, one file for each host. They ask `readcache serve`. `plugin.js` has the code that they
share."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from readcache.hosts.host import InstallTarget

_SETTINGS = re.compile(r"\{ host: .* \}(?=\)$)", re.MULTILINE)


def plugin_text(target: InstallTarget, host: str, plugin: str) -> str:
    """Return the text of the plugin file. `plugin`: the path of the host's own part, below this directory."""
    parts = files("readcache.serve") / "client.js", *(files("readcache.hosts") / name for name in ("plugin.js", plugin))
    client, shared, own = (part.read_text(encoding="utf-8") for part in parts)
    options = {"program": target.program, "mode": target.mode, "options": target.policy_words()}
    settings = json.dumps({"host": host, **options})
    made = f"// Made by `readcache init {host}`, removed by uninit; what is changed here is lost.\n"
    return "\n".join((made + client, _SETTINGS.sub(lambda _: settings, shared, count=1), own))
