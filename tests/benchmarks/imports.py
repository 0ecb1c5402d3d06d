"""What importing readcache adds to the start of Python, in a fresh process each time.

python tests/benchmarks/imports.py [--short] [--check]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from measuring import Table, main, processor_seconds, quartiles

WAYS = {
    "import readcache": 60,
    "from readcache import Session": 60,
    "from readcache import Session; Session()": None,
}


def measure(chosen: argparse.Namespace, table: Table) -> None:
    rounds = 15 if chosen.short else 60
    with tempfile.TemporaryDirectory() as compiled:
        for code, most in WAYS.items():
            wall: list[float] = []
            cpu: list[float] = []
            for round_ in range(rounds + 1):
                bare, ours = start("pass", compiled), start(code, compiled)
                if round_:  # the first one writes the compiled files
                    wall.append((ours[0] - bare[0]) * 1000)
                    cpu.append((ours[1] - bare[1]) * 1000)
            note = f"quartiles {quartiles(wall)}, processor {statistics.median(cpu):.1f}"
            table.row(code, statistics.median(wall), note, most=most, unit="ms")


def start(code: str, compiled: str) -> tuple[float, float]:
    """Seconds of wall and of processor time of a Python that runs `code`."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = compiled
    began, began_cpu = time.perf_counter(), processor_seconds()
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    return time.perf_counter() - began, processor_seconds() - began_cpu


if __name__ == "__main__":
    main(__doc__, measure)
