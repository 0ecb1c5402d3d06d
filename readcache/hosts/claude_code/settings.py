"""The settings that switch readcache on in Claude Code: a plugin if Claude Code accepts one, otherwise hooks. Never
both."""

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

from readcache.hosts.host import Entry, InstallTarget, OwnFile, hook_entry

# Event -> the tools, or the source, that trigger it.
MATCHERS = {
    "PostToolUse": "Bash|Edit|Grep|MultiEdit|NotebookEdit|Read|Write|mcp__.*",
    "PostToolUseFailure": "Bash",
    "SessionStart": "compact",
}
# The first version of Claude Code whose transcript lists its requests by default. With older versions, nothing shows if
# results were cleared on the way to the model. The server may clear them (`clear_tool_uses`), or Claude Code in memory.
_FIRST = (2, 1, 300)
_MOST_STATE = 60  # bytes of the state directory's path: plugins accept a socket path of 100, which has its name, too
_PATIENCE = 10.0  # seconds for `claude --version`, which usually takes 0.1
_SETTINGS = re.compile(r"^const SETTINGS = .*$", re.MULTILINE)
_FOLDER = os.path.join("skills", "readcache")
_MADE = "Made by `readcache init claude-code`, removed by uninit; what is changed here is lost."


def changes(target: InstallTarget) -> Sequence[Entry | OwnFile]:
    """Return the entries or files that `readcache init claude-code` writes."""
    may_recall = Entry(_settings_file(target), ("permissions", "allow", "+"), "Bash(readcache recall:*)")
    return [*(_plugin(target) if why_hooks(target) is None else _hooks(target)), may_recall]


def former_files(target: InstallTarget) -> Sequence[str]:
    """Return the files of both ways to switch it on, because the other way may have been used before."""
    return [_settings_file(target), *(file.path for file in _plugin(target))]


def too_old(target: InstallTarget) -> str | None:
    """Return the reason why this version of Claude Code can omit nothing. Return None if it can, or if the version is
    unknown."""
    version = _version_at(target)
    if version is None or version >= _FIRST:
        return None
    return f"Claude Code {'.'.join(map(str, version))} is too old for omitting: it only advises; update Claude Code"


def why_hooks(target: InstallTarget) -> str | None:
    """Return the reason why hooks are used here, or None if the plugin is used."""
    from readcache.process.state import state_directory

    if old := too_old(target):
        return old
    if _version_at(target) is None and not os.path.exists(_plugin(target)[0].path):
        return "no claude on PATH tells its version"
    if not (target.is_user or _is_trusted(target)):
        return "Claude Code does not trust this folder yet: start claude in it once, or use --user"
    if len(os.fsencode(state_directory())) > _MOST_STATE:
        return "the path of the state directory is too long for a plugin"
    return None


def _hooks(target: InstallTarget) -> list[Entry]:
    matchers = MATCHERS.items()
    return [hook_entry(target, "claude-code", _settings_file(target), event, matcher) for event, matcher in matchers]


def _plugin(target: InstallTarget) -> list[OwnFile]:
    module = (files("readcache.hosts") / "claude_code/register.js").read_text(encoding="utf-8")
    mode = () if target.mode == "on" else (f"--{target.mode}",)
    settings = json.dumps({"program": target.program, "words": ("claude-code", *mode, *target.policy_words())})
    manifest = {"name": "readcache", "version": "1.0.0", "description": f"Leaves out what the model can see. {_MADE}"}
    texts = {
        ".claude-plugin/plugin.json": json.dumps(manifest, indent=2) + "\n",
        "hooks/hooks.json": json.dumps({"description": _MADE, "modules": ["./register.js"]}, indent=2) + "\n",
        "hooks/register.js": f"// {_MADE}\n" + _SETTINGS.sub(lambda _: f"const SETTINGS = {settings}", module, count=1),
    }
    return [OwnFile(os.path.join(_directory(target), _FOLDER, name), text) for name, text in texts.items()]


def _version_at(target: InstallTarget) -> tuple[int, ...] | None:
    return _version(shutil.which("claude", path=target.environment.get("PATH", "")) or "")


@functools.cache
def _version(program: str) -> tuple[int, ...] | None:
    """Return the Claude Code version, or None if `claude --version` does not print one within 10 seconds."""
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(rb"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else None


def _is_trusted(target: InstallTarget) -> bool:
    """Return True if Claude Code loads plugins of this project, because its user has accepted the trust dialog."""
    from readcache.hosts.settings_files.settings_text import settings_in

    state = os.path.join(target.environment.get("CLAUDE_CONFIG_DIR") or target.home, ".claude.json")
    projects = settings_in(state).get("projects")
    known: dict[str, Any] = projects if isinstance(projects, dict) else {}
    return isinstance(known.get(target.root), dict) and known[target.root].get("hasTrustDialogAccepted") is True


def _settings_file(target: InstallTarget) -> str:
    return os.path.join(_directory(target), "settings.json")


def _directory(target: InstallTarget) -> str:
    return _user_directory(target) if target.is_user else os.path.join(target.root, ".claude")


def _user_directory(target: InstallTarget) -> str:
    return target.environment.get("CLAUDE_CONFIG_DIR") or os.path.join(target.home, ".claude")


def in_force(target: InstallTarget) -> str:
    """Return what `doctor` reports. Raise ReadcacheError if a setting disables the hooks or the plugin, if both are
    installed, or if Claude Code is too old for mode "on"."""
    from readcache import ReadcacheError
    from readcache.hosts.settings_files.settings_text import settings_in

    plugins, hooks = list[str](), list[str]()
    for directory in (_user_directory(target), os.path.join(target.root, ".claude")):
        folder = os.path.join(directory, _FOLDER)
        plugins += [folder] if os.path.exists(folder) else []
        for name in ("settings.json", "settings.local.json"):
            file = os.path.join(directory, name)
            settings = settings_in(file)
            if settings.get("disableAllHooks"):
                raise ReadcacheError(f"no hook runs: remove disableAllHooks from {file}")
            enabled = settings.get("enabledPlugins")
            if isinstance(enabled, dict) and enabled.get("readcache@skills-dir") is False:
                raise ReadcacheError(f"the plugin is disabled: remove readcache@skills-dir from {file}")
            hooks += [file] if "hook claude-code" in json.dumps(settings.get("hooks")) else []
    if plugins and hooks:
        raise ReadcacheError(f"{plugins[0]} and hooks in {hooks[0]} are both in force: run uninit for one of them")
    old, reason = too_old(target), why_hooks(target)
    if old and target.mode == "on":
        raise ReadcacheError(f"{old}, then run init again")
    return "Claude Code loads the plugin" if reason is None else f"Claude Code runs the hooks ({reason})"
