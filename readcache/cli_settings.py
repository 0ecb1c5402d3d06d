"""What the environment and the flags say: session, agent, store, mode. And where this user's state lives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from readcache.errors import UsageError

MODES = {
    **dict.fromkeys(("", "on", "1", "true", "yes"), "on"),
    **dict.fromkeys(("off", "0", "false", "no"), "off"),
    "advise": "advise",
}
# Set for the children of a wrapped command: what runs inside one does not print what the agent reads.
INSIDE = "READCACHE_INSIDE"


@dataclass(frozen=True, slots=True)
class Settings:
    """Whose conversation it is and where it is kept. `session` is "" when none was named."""

    session: str
    agent: str
    store: str  # a path or URL; "" for the default
    mode: str  # "on", "advise", "off", or what READCACHE holds that is none of these

    @property
    def context(self) -> str:
        """The value of `INSIDE` for the children of this context's commands."""
        return f"{self.session}/{self.agent}"

    def store_spec(self) -> str:
        """The store to open. UsageError when there is no home directory to put the default one into."""
        return self.store or os.path.join(state_directory(), "readcache.db")


def read_settings(
    env: Mapping[str, str],
    *,
    session: str | None = None,
    agent: str | None = None,
    store: str | None = None,
    advise: bool = False,
) -> Settings:
    """Flags win over the environment; an empty value is none."""
    given = env.get("READCACHE", "").strip().lower()
    mode = MODES.get(given, given)
    return Settings(
        session or env.get("READCACHE_SESSION", ""),
        agent or env.get("READCACHE_AGENT", "") or "main",
        store or env.get("READCACHE_STORE", ""),
        "advise" if advise and mode == "on" else mode,
    )


def state_directory() -> str:
    """$XDG_STATE_HOME/readcache; a relative value is ignored, as the XDG specification wants."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    if not os.path.isabs(base):
        raise UsageError("no home directory is known to keep the store in; name a file with --store or READCACHE_STORE")
    return os.path.join(base, "readcache")
