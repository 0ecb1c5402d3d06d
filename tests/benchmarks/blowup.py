"""How much longer twice as much of an input takes that was made to take long: 2 times is linear, 4 quadratic.

    PYTHONPATH=. python tests/benchmarks/blowup.py [--short] [--check]

Processor time of commands that are read, outputs that are judged, message lists that are synced and mended,
transcripts, hooks' input and requests. `tests/helpers/adversaries.py` has the inputs; their sizes are in characters.
"""

from __future__ import annotations

import argparse

from measuring import Table, main

from tests.helpers.adversaries import CASES, per_doubling

# A doubling of linear work takes 2.0 to 2.2 times as long: caches, and logarithms.
MOST_PER_DOUBLING = 2.4


def measure(chosen: argparse.Namespace, table: Table) -> None:
    for name, case in CASES.items():
        size, took, ratio = per_doubling(case, 0.02 if chosen.short else 0.1)
        for _ in range(2):  # another program may have had the processor's caches
            if ratio > MOST_PER_DOUBLING:
                size, took, ratio = min(per_doubling(case), (size, took, ratio), key=lambda found: found[2])
        note = f"{took * 1e3:.0f} ms for {size:,} characters"
        table.row(name, ratio, note, most=MOST_PER_DOUBLING)


if __name__ == "__main__":
    main(__doc__, measure)
