"""The harnesses that people use: one adapter for each, and the server for other languages.

An adapter knows its host and the public names of this package, and nothing else; no other file knows a host.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see readcache/__init__.py
if TYPE_CHECKING:
    from types import ModuleType

# What `readcache init`, `uninit`, `hook` and `doctor` know, and the module of its `HOST`.
MODULES = {
    "claude-code": "readcache.hosts.claude_code",
    "codex": "readcache.hosts.codex",
    "gemini": "readcache.hosts.gemini",
    "mini-swe-agent": "readcache.hosts.mini_swe_agent",
    "opencode": "readcache.hosts.opencode",
}


def host_module(name: str) -> ModuleType:
    """The adapter's module, which has `HOST`. UsageError for an unknown host."""
    if name not in MODULES:
        from readcache import UsageError

        raise UsageError(f"unknown host {name!r}: choose one of {', '.join(MODULES)}")
    import importlib

    return importlib.import_module(MODULES[name])
