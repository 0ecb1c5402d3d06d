"""Codex CLI: a hook lets the commands of its shell tool run through `readcache run`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from readcache.hosts.host import Entry, Host, Where


def _changes(where: Where) -> Sequence[Entry]:
    folder = where.environment.get("CODEX_HOME") or os.path.join(where.home, ".codex")
    path = os.path.join(folder if where.is_user else os.path.join(where.root, ".codex"), "hooks.json")
    hook = {"type": "command", "command": where.line("hook", "codex"), "timeout": 30}
    return [Entry(path, ("hooks", "PreToolUse", "+"), {"matcher": "^Bash$", "hooks": [hook]})]


def _rewrite(event: Mapping[str, Any], where: Where) -> Mapping[str, Any] | None:
    return None


HOST = Host("codex", "on", "its hooks tell of each compaction", _changes, rewrite=_rewrite)
