"""What was killed, torn and crowded, and what it cost, as the tests themselves counted it.

    python -m pytest -q -m slow tests/log tests/session/test_crowds.py tests/serve --junitxml=faults.xml
    python -m tests.docs.faults faults.xml; python -m tests.docs.generate --write

The tests tell what they did with `record_property`; they fail where a byte was lost or a marker not proven.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from tests.docs.tables import TOP, table

MEASURED = TOP / "tests/benchmarks/measured-faults.json"
COUNTS = ("kills", "processes", "calls")
# a test -> what it does
TESTS = {
    "tests.log.test_kills::test_that_holds_for_a_kill_at_each_statement": (
        "a session killed at each statement that it gives to SQLite, then read on by another process"
    ),
    "tests.session.test_crowds::test_processes_at_once_lose_nothing_and_name_nothing_that_is_not_there": (
        "processes at once on one SQLite file: on one session, on sessions of their own, as sub-agents"
    ),
    "tests.log.test_redis_crowds::test_processes_at_once_lose_nothing_and_name_nothing_that_is_not_there": (
        "the same on one Redis server"
    ),
    "tests.log.test_redis_crowds::test_a_server_that_is_killed_again_and_again_under_load_costs_savings_and_no_byte": (
        "a Redis server killed under load, which comes back with all, some or nothing of what it had"
    ),
    "tests.serve.test_many_clients::test_nothing_is_lost_and_nothing_wrong": "clients at once of one `readcache serve`",
    "tests.serve.test_many_clients::test_with_a_server_that_is_killed_every_second_nothing_is_wrong": (
        "the same while the server is killed every second"
    ),
}


def counted(path: Path) -> dict[str, dict[str, int]]:
    """Test -> its counts, from a report of pytest's. ValueError where one of `TESTS` failed or did not run."""
    found: dict[str, Counter[str]] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{str(case.get('name')).partition('[')[0]}"
        told = {str(one.get("name")): int(str(one.get("value"))) for one in case.iter("property")}
        if name in TESTS and told:
            if case.find("failure") is not None or case.find("error") is not None:
                raise ValueError(f"{name} failed")
            found.setdefault(name, Counter()).update(told)
    if missing := TESTS.keys() - found.keys():
        raise ValueError(f"did not run: {', '.join(sorted(missing))}")
    return {name: {count: found[name][count] for count in COUNTS} for name in TESTS}


def faults() -> str:
    """The table."""
    measured: dict[str, dict[str, int]] = json.loads(MEASURED.read_text(encoding="utf-8"))
    rows = [(what, *(f"{measured[name][count]:,}" for count in COUNTS)) for name, what in TESTS.items()]
    total = [f"{sum(counts[count] for counts in measured.values()):,}" for count in COUNTS]
    return f"{table(('what', *COUNTS), [*rows, ('together', *total)])}\n"


if __name__ == "__main__":
    MEASURED.write_text(json.dumps(counted(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
