"""What READCACHE says. It imports nothing: a hook that asks a server starts with it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OFF = ("off", "0", "false", "no")
MODES = {**dict.fromkeys(("", "on", "1", "true", "yes"), "on"), **dict.fromkeys(OFF, "off"), "advise": "advise"}


def mode_named(env: Mapping[str, str]) -> str:
    """ "on", "advise" or "off". Any other value of READCACHE is returned as it is: an error, and nothing is omitted."""
    given = env.get("READCACHE", "").strip().lower()
    return MODES.get(given, given)


def acts(mode: str) -> bool:
    """False for a mode in which tools' results are let pass and nothing else is done."""
    return mode in ("on", "advise")
