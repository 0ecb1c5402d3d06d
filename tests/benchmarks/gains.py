"""`readcache gain` on a large store: all of it, and `--short`, which looks at today alone.

    python tests/benchmarks/gains.py [--data DIR] [--short]

The store is filled with sessions, `max`, again and again until it is large enough.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measuring import Table, main, run_measured, sessions

from readcache import Policy, Session

ROUNDS = 5
MEGABYTES = {True: 5, False: 100}  # in short, and else
DAYS = 40  # over which the sessions are spread


def fill(path: Path, data: Path | None, megabytes: int) -> None:
    """Sessions of the last `DAYS` days."""
    for number in itertools.count():
        for at, records in enumerate(sessions(data)):
            if path.exists() and path.stat().st_size > megabytes * 1_000_000:
                return
            when = time.time() - 86_400 * (at % DAYS)
            name = f"{number}.{at}"
            with Session("/w", session_id=name, store=path, policy=Policy.named("max"), clock=lambda w=when: w) as one:  # type: ignore[misc]
                for record in records:
                    if record["tool"] == "bash":
                        one.observe(
                            record["input"].get("command") or "", record["output"], cwd=record.get("cwd") or "/w"
                        )


def measure(chosen: argparse.Namespace, table: Table) -> None:
    """One row for each way to ask."""
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory, "log.db")
        fill(store, chosen.data, MEGABYTES[chosen.short])
        print(f"a store of {store.stat().st_size / 1e6:.0f} MB")
        asks = {"no store, --short": ["--short", "--store", f"{directory}/none.db"]}
        asks |= {"--short": ["--short", "--store", str(store)], "all": ["--json", "--store", str(store)]}
        for name, words in asks.items():
            got = [run_measured([sys.executable, "-m", "readcache", "gain", *words])[1] for _ in range(ROUNDS)]
            table.row(f"gain, {name}", statistics.median(got), unit="s")


if __name__ == "__main__":
    main(__doc__, measure)
