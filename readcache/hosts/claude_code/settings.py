"""What switches readcache on in Claude Code: a plugin where it takes one, else hooks in its settings. Never both."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from readcache.hosts.host import Entry, OwnFile, Where, hook_entry

# Event -> the tools, or the source, that trigger it.
MATCHERS = {
    "PostToolUse": "Bash|Edit|Grep|MultiEdit|NotebookEdit|Read|Write|mcp__.*",
    "PostToolUseFailure": "Bash",
    "SessionStart": "compact",
}
# The first version of Claude Code whose transcript lists its requests by default. Those before it do not tell whether
# results were cleared on the way to the model: the server may do so (`clear_tool_uses`), or Claude Code in memory.
_FIRST = (2, 1, 300)
_MOST_STATE = 60  # bytes of the state directory's path: plugins reach a socket of 100, and its name is below
_PATIENCE = 10.0  # seconds for `claude --version`, which takes 0.1
_SETTINGS = re.compile(r"^const SETTINGS = .*$", re.MULTILINE)
_FOLDER = os.path.join("skills", "readcache")
_MADE = "Made by `readcache init claude-code`, removed by uninit; what is changed here is lost."


def changes(where: Where) -> Sequence[Entry | OwnFile]:
    """What `readcache init claude-code` puts where."""
    return _plugin(where) if why_hooks(where) is None else _hooks(where)


def former_files(where: Where) -> Sequence[str]:
    """Return the files of both ways to switch it on: one was in use before if the other is now."""
    return [_settings_file(where), *(file.path for file in _plugin(where))]


def too_old(where: Where) -> str | None:
    """Return why nothing can be omitted with this version of Claude Code; None if it can, or the version is unknown."""
    version = _version_at(where)
    if version is None or version >= _FIRST:
        return None
    return f"Claude Code {'.'.join(map(str, version))} is too old for omitting: it only advises; update Claude Code"


def why_hooks(where: Where) -> str | None:
    """Return why hooks are used here; None if the plugin is."""
    from readcache.process.state import state_directory

    if old := too_old(where):
        return old
    if _version_at(where) is None and not os.path.exists(_plugin(where)[0].path):
        return "no claude on PATH tells its version"
    if not (where.is_user or _is_trusted(where)):
        return "Claude Code does not trust this folder yet: start claude in it once, or use --user"
    if len(os.fsencode(state_directory())) > _MOST_STATE:
        return "the path of the state directory is too long for a plugin"
    return None


def _hooks(where: Where) -> list[Entry]:
    matchers = MATCHERS.items()
    return [hook_entry(where, "claude-code", _settings_file(where), event, matcher) for event, matcher in matchers]


def _plugin(where: Where) -> list[OwnFile]:
    module = (files("readcache.hosts") / "claude_code/register.js").read_text(encoding="utf-8")
    mode = () if where.mode == "on" else (f"--{where.mode}",)
    settings = json.dumps({"program": where.program, "words": ("claude-code", *mode, *where.policy_words())})
    told = {"name": "readcache", "version": "1.0.0", "description": f"Leaves out what the model can see. {_MADE}"}
    texts = {
        ".claude-plugin/plugin.json": json.dumps(told, indent=2) + "\n",
        "hooks/hooks.json": json.dumps({"description": _MADE, "modules": ["./register.js"]}, indent=2) + "\n",
        "hooks/register.js": f"// {_MADE}\n" + _SETTINGS.sub(lambda _: f"const SETTINGS = {settings}", module, count=1),
    }
    return [OwnFile(os.path.join(_place(where), _FOLDER, name), text) for name, text in texts.items()]


def _version_at(where: Where) -> tuple[int, ...] | None:
    return _version(shutil.which("claude", path=where.environment.get("PATH", "")) or "")


@functools.cache
def _version(program: str) -> tuple[int, ...] | None:
    """Of Claude Code; None where it does not tell."""
    try:
        ran = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(rb"(\d+)\.(\d+)\.(\d+)", ran.stdout)
    return tuple(map(int, found.groups())) if found else None


def _is_trusted(where: Where) -> bool:
    """True if Claude Code loads plugins of this project: its user has said that it may."""
    from readcache.hosts.settings_files.json_text import settings_in

    projects = settings_in(_state_file(where)).get("projects")
    known: dict[str, Any] = projects if isinstance(projects, dict) else {}
    return isinstance(known.get(where.root), dict) and known[where.root].get("hasTrustDialogAccepted") is True


def _settings_file(where: Where) -> str:
    return os.path.join(_place(where), "settings.json")


def _state_file(where: Where) -> str:
    return os.path.join(where.environment.get("CLAUDE_CONFIG_DIR") or where.home, ".claude.json")


def _place(where: Where) -> str:
    return _user_place(where) if where.is_user else os.path.join(where.root, ".claude")


def _user_place(where: Where) -> str:
    return where.environment.get("CLAUDE_CONFIG_DIR") or os.path.join(where.home, ".claude")


def in_force(where: Where) -> str:
    """What `doctor` says. ReadcacheError where nothing of ours would run, or both ways would."""
    from readcache import ReadcacheError
    from readcache.hosts.settings_files.json_text import settings_in

    plugins, hooks = list[str](), list[str]()
    for place in (_user_place(where), os.path.join(where.root, ".claude")):
        folder = os.path.join(place, _FOLDER)
        plugins += [folder] if os.path.exists(folder) else []
        for name in ("settings.json", "settings.local.json"):
            file = os.path.join(place, name)
            settings = settings_in(file)
            if settings.get("disableAllHooks"):
                raise ReadcacheError(f"no hook runs: remove disableAllHooks from {file}")
            enabled = settings.get("enabledPlugins")
            if isinstance(enabled, dict) and enabled.get("readcache@skills-dir") is False:
                raise ReadcacheError(f"the plugin is disabled: remove readcache@skills-dir from {file}")
            hooks += [file] if "hook claude-code" in json.dumps(settings.get("hooks")) else []
    if plugins and hooks:
        raise ReadcacheError(f"{plugins[0]} and hooks in {hooks[0]} are both in force: run uninit for one of them")
    old, reason = too_old(where), why_hooks(where)
    if old and where.mode == "on":
        raise ReadcacheError(f"{old}, then run init again")
    return "Claude Code loads the plugin" if reason is None else f"Claude Code runs the hooks ({reason})"
