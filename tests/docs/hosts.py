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
    for path in sorted(TOP.glob("tests/real_hosts/*/measured-*.json")):
        found |= json.loads(path.read_text(encoding="utf-8"))
    head = ("host", "run on", "versions", "characters of tool results in all requests", "milliseconds a tool call")
    return table(head, (_row(name, found[name]) for name in sorted(found, key=str.lower)))


def versions() -> str:
    """One row for each host whose packages the tests install: the versions at each change, and the oldest."""
    rows = []
    for path in sorted(TOP.glob("tests/real_hosts/*/needs.json")):
        needs = json.loads(path.read_text(encoding="utf-8"))
        newest = [package for package in [*needs.get("pip", []), *needs.get("npm", [])] if package not in _NO_HOSTS]
        older = [*needs.get("variants", []), *([needs["oldest"]] if "oldest" in needs else [])]
        if newest and path.parent.name != "browser":
            rows.append((path.parent.name, _listed(newest), "; ".join(map(_listed, older)) or "–"))
    return table(("tests", "versions", "older ones"), rows)


def tried(name: str) -> str:
    """What came of the main conversation with each version of a host that was tried, and on a busy machine: see
    tests/real_hosts/run.py --versions and --load."""
    directory = TOP / "tests/real_hosts" / name
    tested = json.loads((directory / "versions.json").read_text(encoding="utf-8"))
    head = ("version", "way", "`init` said", "results recorded", "markers sent", "`doctor` said")
    made = table(head, (_tried_row(name, one) for one in tested))
    loads = directory / "load.json"
    busy = json.loads(loads.read_text(encoding="utf-8")) if loads.exists() else []
    ways = (f"{one['load']} of the {one['rest']}{' (' + one['way'] + ')' if one['way'] else ''}" for one in busy)
    said = f"Markers beside two busy loops for each core, of those at rest: {', '.join(ways)}."
    return f"{made}\n\n{said}" if busy else made


def tried_hosts() -> list[str]:
    """The hosts with such a table."""
    return sorted(path.parent.name for path in TOP.glob("tests/real_hosts/*/versions.json"))


def _tried_row(name: str, tested: dict[str, Any]) -> tuple[str, ...]:
    said = re.sub(r" \(.*\)$", "", tested["said"].removeprefix(f"{name}: "))
    doctor = re.sub(r"/\S*/home/", "~/", tested["doctor"])
    recorded, markers = f"{tested['recorded']} of {tested['results']}", str(tested["markers"])
    return tested["version"], tested["way"] or "–", said, recorded, markers, doctor


def _listed(packages: list[str]) -> str:
    return ", ".join(" ".join(re.split(r"==|(?<=.)@", package)) for package in packages)


def _row(name: str, run: dict[str, Any]) -> tuple[str, ...]:
    before, after = run["before"], run["after"]
    versions = ", ".join(f"{package} {version}" for package, version in run["versions"].items())
    saved = round(100 * (1 - after["chars"] / before["chars"]))
    chars = f"{before['chars']:,} → {after['chars']:,} (−{saved} %)"
    times = " → ".join(f"{round(one['milliseconds']):,}" for one in (before, after))
    return name, run["date"], versions, chars, times
