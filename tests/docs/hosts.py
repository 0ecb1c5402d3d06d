"""The table of hosts: what the tests against the real ones measured when they were last run."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.docs.tables import TOP, table

_NO_HOSTS = ("mcp>=2.3,<3",)  # only needed beside one


def hosts() -> str:
    """One row for each scripted conversation that was held with a real host, without readcache and with it."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(TOP.glob("tests/hosts/*/measured-*.json")):
        found |= json.loads(path.read_text(encoding="utf-8"))
    head = ("host", "run on", "versions", "characters of tool results in all requests", "milliseconds a tool call")
    return table(head, (_row(name, found[name]) for name in sorted(found, key=str.lower)))


def versions() -> str:
    """One row for each host whose packages the tests install: the versions at each change, and the oldest."""
    rows = []
    for path in sorted(TOP.glob("tests/hosts/*/needs.json")):
        needs = json.loads(path.read_text(encoding="utf-8"))
        newest = [package for package in [*needs.get("pip", []), *needs.get("npm", [])] if package not in _NO_HOSTS]
        older = [*needs.get("variants", []), *([needs["oldest"]] if "oldest" in needs else [])]
        if newest and path.parent.name != "browser":
            rows.append((path.parent.name, _listed(newest), "; ".join(map(_listed, older)) or "–"))
    return table(("tests", "versions", "older ones"), rows)


def _listed(packages: list[str]) -> str:
    return ", ".join(" ".join(re.split(r"==|(?<=.)@", package)) for package in packages)


def _row(name: str, run: dict[str, Any]) -> tuple[str, ...]:
    before, after = run["before"], run["after"]
    versions = ", ".join(f"{package} {version}" for package, version in run["versions"].items())
    saved = round(100 * (1 - after["chars"] / before["chars"]))
    chars = f"{before['chars']:,} → {after['chars']:,} (−{saved} %)"
    times = " → ".join(f"{round(one['milliseconds']):,}" for one in (before, after))
    return name, run["date"], versions, chars, times
