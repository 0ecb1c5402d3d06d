"""What a call costs: `Session.run` beside plain bash, and the judgement alone over whole sessions.

python tests/benchmarks/speed.py [--data DIR] [--short] [--check]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from measuring import Table, in_turns, main, quartiles, sessions, source, tell

from readcache import Insist, Outcome, Policy, Session


def measure(chosen: argparse.Namespace, table: Table) -> None:
    with tempfile.TemporaryDirectory() as directory:
        beside_bash(Path(directory), 60 if chosen.short else 300, table)
    policies = {
        "default": (Policy(), 0.5, 10.0),
        "delta": (Policy(delta=True), None, None),
        "any_output": (Policy(any_output=True), None, None),
    }
    for name, (policy, most, most_99) in policies.items():
        took = judge_all(chosen, policy)
        percentiles = statistics.quantiles(took, n=1000)
        note = f"{len(took)} calls"
        table.row(f"observe, {name}: median", percentiles[499], note, most=most, unit="ms")
        table.row(f"observe, {name}: 99th percentile", percentiles[989], "", most=most_99, unit="ms")
        table.row(f"observe, {name}: 99.9th percentile", percentiles[998], f"max {max(took):.1f} ms", unit="ms")


def beside_bash(directory: Path, rounds: int, table: Table) -> None:
    """2,000 lines of `cat`, shown and left out, against the plain `subprocess.run` that a harness has."""
    (directory / "big.py").write_text("".join(line + "\n" for line in source(random.Random(1), 2000)))
    command = f"cat {directory}/big.py"
    files = itertools.count()

    def plain() -> str:
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return ran.stdout.decode("utf-8", "replace")

    for store in ("memory", "SQLite"):

        def fresh(store: str = store) -> Session:
            return Session(
                directory,
                store=None if store == "memory" else directory / f"{next(files)}.db",
                policy=Policy(insist=Insist.STUB),  # a marker each time
            )

        spare = [fresh() for _ in range(rounds + 2)]
        wall, cpu = in_turns(lambda spare=spare: spare.pop().run(command), plain, rounds)  # type: ignore[misc]
        note = f"quartiles {quartiles(wall)}, processor {statistics.median(cpu):.3f}"
        table.row(f"run, first time, {store}", statistics.median(wall), note, most=1.3 if store == "memory" else None)

        session = fresh()
        session.run(command)

        def look_around(session: Session = session) -> None:
            """The very same request right after an omission is answered in full, so others come between."""
            for _ in range(3):
                session.observe("pwd", "/repo\n")

        def repeated(session: Session = session) -> None:
            reply = session.run(command)
            assert reply.outcome is Outcome.UNCHANGED, reply.reason

        wall, cpu = in_turns(repeated, plain, rounds, between=look_around)
        note = f"quartiles {quartiles(wall)}, processor {statistics.median(cpu):.3f}"
        table.row(f"run, repeated, {store}", statistics.median(wall), note, most=1.3 if store == "memory" else None)


def judge_all(chosen: argparse.Namespace, policy: Policy) -> list[float]:
    """Milliseconds of processor time of each call of each session."""
    took: list[float] = []
    for records in sessions(chosen.data, every=8 if chosen.short else 1):
        session = Session("/", policy=policy)
        gc.collect()
        for record in records:
            began = time.thread_time()
            reply = tell(session, record)
            spent = time.thread_time() - began
            if reply is not None:
                took.append(spent * 1000)
    return took


if __name__ == "__main__":
    main(__doc__, measure)
