"""The harnesses that people use, with one adapter for each.

An adapter knows only its own host. The forms of the hosts' transcripts are in `transcripts`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see readcache/__init__.py
if TYPE_CHECKING:
    from readcache.hosts.host import Host

# Hosts that `readcache init`, `uninit`, `hook` and `doctor` know: name -> the module with its `HOST`. Other packages
# add their hosts as entry points `readcache.hosts`.
MODULES = {
    "claude-code": "readcache.hosts.claude_code.adapter",
    "codex": "readcache.hosts.codex",
    "copilot": "readcache.hosts.copilot",
    "gemini": "readcache.hosts.gemini",
    "kilo": "readcache.hosts.opencode.kilo",
    "mini-swe-agent": "readcache.hosts.mini_swe_agent.adapter",
    "opencode": "readcache.hosts.opencode.adapter",
    "pi": "readcache.hosts.pi.adapter",
}


def find_host(name: str) -> Host:
    """Return the host of that name. Raise UsageError if it is unknown, or if another package's host cannot be
    imported."""
    if name in MODULES:
        import importlib

        found: Host = importlib.import_module(MODULES[name]).HOST
        return found
    from readcache.core.model.errors import UsageError, did_you_mean
    from readcache.core.model.plugins import load_plugin, plugin_names

    if (host := load_plugin("hosts", name)) is None:
        names = [*MODULES, *plugin_names("hosts")]
        raise UsageError(f"unknown host {name!r}{did_you_mean(name, names)}: choose one of {', '.join(names)}")
    plugin: Host = host
    return plugin
