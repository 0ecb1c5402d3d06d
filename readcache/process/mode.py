"""Read the variable READCACHE. This module imports nothing, because a hook that asks a server starts with it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OFF = ("off", "0", "false", "no")
MODES = {**dict.fromkeys(("", "on", "1", "true", "yes"), "on"), **dict.fromkeys(OFF, "off"), "advise": "advise"}


def mode_named(env: Mapping[str, str]) -> str:
    """Return "on", "advise" or "off". Return any other value of READCACHE in lower case: it is an error, and nothing is
    omitted."""
    given = env.get("READCACHE", "").strip().lower()
    return MODES.get(given, given)


def acts(mode: str) -> bool:
    """Return False for a mode in which tool results pass unchanged and nothing else is done."""
    return mode in ("on", "advise")
