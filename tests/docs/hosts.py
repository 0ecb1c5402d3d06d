"""The table of hosts: what the tests against the real ones measured when they were last run."""

from __future__ import annotations

import json
from typing import Any

from tests.docs.tables import TOP, table


def hosts() -> str:
    """One row for each scripted conversation that was held with a real host, without readcache and with it."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(TOP.glob("tests/hosts/*/measured-*.json")):
        found |= json.loads(path.read_text(encoding="utf-8"))
    head = ("host", "run on", "versions", "characters of tool results in all requests", "milliseconds a tool call")
    return table(head, (_row(name, found[name]) for name in sorted(found, key=str.lower)))


def _row(name: str, run: dict[str, Any]) -> tuple[str, ...]:
    before, after = run["before"], run["after"]
    versions = ", ".join(f"{package} {version}" for package, version in run["versions"].items())
    saved = round(100 * (1 - after["chars"] / before["chars"]))
    times = (round(1000 * one["seconds"] / one["calls"]) for one in (before, after))
    chars = f"{before['chars']:,} → {after['chars']:,} (−{saved} %)"
    return name, run["date"], versions, chars, " → ".join(f"{time:,}" for time in times)
