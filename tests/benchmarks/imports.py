"""What `import readcache` adds to the start of Python, in a fresh process each time.

    python tests/benchmarks/imports.py [--short] [--check]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from measuring import Table, main, processor_seconds, quartiles


def measure(chosen: argparse.Namespace, table: Table) -> None:
    rounds = 15 if chosen.short else 60
    wall: list[float] = []
    cpu: list[float] = []
    for round_ in range(rounds + 1):
        bare, ours = start("pass"), start("import readcache")
        if round_:  # the first one writes the compiled files
            wall.append((ours[0] - bare[0]) * 1000)
            cpu.append((ours[1] - bare[1]) * 1000)
    table.row("import over bare Python, wall", statistics.median(wall), f"quartiles {quartiles(wall)}", most=60, unit="ms")
    table.row("import over bare Python, processor", statistics.median(cpu), f"quartiles {quartiles(cpu)}", unit="ms")


def start(code: str) -> tuple[float, float]:
    """Seconds of wall and of processor time of a Python that runs `code`."""
    began, began_cpu = time.perf_counter(), processor_seconds()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began, processor_seconds() - began_cpu


if __name__ == "__main__":
    main(__doc__, measure)
