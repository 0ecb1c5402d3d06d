"""Plays random worlds, and prints a short script of each that breaks the promise.

python -m tests.laws.worlds --worlds 2000 --jobs 2
python -m tests.laws.worlds --first 1234 --worlds 1      # one world
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from readcache.core.model.spec.marker import Untrue
from tests.laws.mutants.mutants import applied
from tests.laws.worlds.faults import FAULTS
from tests.laws.worlds.script import Script, script_of, shrink
from tests.laws.worlds.world import Raised, play

MEASURED = Path(__file__).parent / "measured-faults.json"


def trouble(script: Script) -> str:
    """What is wrong with this world; "" if the promise holds."""
    try:
        play(script)
    except (Untrue, Raised) as wrong:
        return str(wrong)
    return ""


def shortest(script: Script) -> str:
    """A short script that fails as this one does, and why."""
    small = shrink(script, lambda other: trouble(other) != "")
    return f"{small}\n{trouble(small)}"


def try_worlds(first: int, count: int) -> tuple[Counter[str], list[str]]:
    """(what happened and how often, the worlds that broke the promise)."""
    told, broken = Counter[str](), list[str]()
    for seed in range(first, first + count):
        script = script_of(seed)
        try:
            told.update(play(script).told)
        except (Untrue, Raised):
            broken.append(shortest(script))
    return told, broken


def find_faults() -> dict[str, int]:
    """After how many worlds each planted fault is found."""
    found = {}
    for fault in FAULTS:
        with applied(fault):
            found[fault.name] = 1 + next(seed for seed in itertools.count() if trouble(script_of(seed)))
    return found


def main() -> int:
    """The exit status is 1 if a world broke the promise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the number of the first world")
    parser.add_argument("--worlds", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--faults", action="store_true", help="measure the planted faults instead")
    given = parser.parse_args()
    if given.faults:
        MEASURED.write_text(json.dumps(find_faults(), indent=1) + "\n", encoding="utf-8")
        return 0
    began, size = time.monotonic(), -(-given.worlds // given.jobs)
    told, broken = Counter[str](), list[str]()
    with ProcessPoolExecutor(given.jobs) as pool:
        starts = range(given.first, given.first + given.worlds, size)
        counts = [min(size, given.first + given.worlds - start) for start in starts]
        for what, wrong in pool.map(try_worlds, starts, counts):
            told.update(what)
            broken += wrong
    seconds = time.monotonic() - began
    kinds = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(told.items()))
    print(f"{given.worlds:,} worlds in {seconds:.0f} s, {len(broken)} broke the promise; {kinds}")
    print("\n\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
