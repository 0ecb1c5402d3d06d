"""A search for the output that takes longest: how much processor time one answer takes at worst.

    PYTHONPATH=. python tests/benchmarks/worst.py [--short] [--check]

Sessions that hold 8 MB, and then an output of 1 MB, made of few or many lines, short or long, in orders that make the
search for visible lines work. Each seed is one session. The time is of the first answer, which indexes what the session
holds. Then outputs of 1 MB, and commands of 100 kB, that make the search for secrets work, each in a new session; a
request of a host that keeps its list of 5,000 messages, of which every result was cleared; and a Redis session of
16,000 events that is read for all its readers.
"""

from __future__ import annotations

import argparse
import random
import time

from measuring import Table, main

from readcache import Policy, Session
from tests.helpers.adversaries import CASES, SECRETIVE, stored
from tests.helpers.adversaries import seconds as seconds_of

KEPT, KEPT_SIZE = CASES["messages: calls at once, changed"], 120 * 2_500
STORED_SIZE = 100 * 16_000
IN_VIEW, OUTPUT, COMMAND = 8_000_000, 1_000_000, 100_000  # characters; Linux takes no longer argument than 131,072
MOST_SECONDS = 0.5
ORDERS = ("any", "on", "back", "runs", "every other", "among new")
COMMANDS = ("cat f0", "cat new", "cat f0 f1", "sed -n '5,50000p' f0", "grep -n x f0", "python x.py")


def measure(chosen: argparse.Namespace, table: Table) -> None:
    found = [_seconds(seed) for seed in range(12 if chosen.short else 120)]
    found.sort(reverse=True)
    table.row("seconds, half of all", found[len(found) // 2][0], unit="s")
    for seconds, about in found[:3]:
        table.row("seconds, at worst", seconds, about, most=MOST_SECONDS, unit="s")
    for name, case, size in (("5,000 messages", KEPT, KEPT_SIZE), ("16,000 rows", stored, STORED_SIZE)):
        table.row(f"seconds, {name}", seconds_of(case(size)), most=MOST_SECONDS, unit="s")
    secretive = sorted(((_seconds_of(name), name) for name in SECRETIVE), reverse=True)
    for seconds, about in secretive[:3]:
        table.row("seconds, looking for secrets", seconds, about, most=MOST_SECONDS, unit="s")


def _seconds(seed: int) -> tuple[float, str]:
    rng = random.Random(seed)
    count, length, files = rng.choice([2, 20, 500, 5_000, 50_000]), rng.choice([0, 1, 5, 20, 80]), rng.choice([1, 2, 8])
    lines = ["".join(rng.choices("abcdefgh ", k=length)) for _ in range(count)]
    first_order, again = rng.choice(ORDERS), rng.choice(ORDERS)
    preset, command = rng.choice(["default", "delta", "max"]), rng.choice(COMMANDS)
    session = Session("/r", policy=Policy.named(preset))
    for file in range(files):
        session.observe(f"cat f{file}", _text(rng, lines, first_order, IN_VIEW // files))
    output = _text(rng, lines, again, OUTPUT)
    began = time.process_time()
    session.observe(command, output)
    took = time.process_time() - began
    return took, f"seed {seed}: {count} lines of {length}, {files} files, {first_order}/{again}, {preset}, {command}"


def _seconds_of(name: str) -> float:
    calls = SECRETIVE[name](COMMAND if name.startswith("a command") else OUTPUT)
    session = Session("/r")
    began = time.process_time()
    for command, output in calls:
        session.observe(command, output)
    return time.process_time() - began


def _text(rng: random.Random, lines: list[str], order: str, size: int) -> str:
    out: list[str] = []
    left, at = size, rng.randrange(len(lines))
    while left > 0:
        step = {"on": 1, "back": -1}.get(order)
        at = at + step if step else rng.randrange(len(lines))
        run = rng.choice([2, 5, 100]) if order == "runs" else 3 if order == "among new" else 1
        added = [lines[(at + n) % len(lines)] for n in range(run)]
        added += [str(rng.random())] if order == "among new" else [lines[0]] if order == "every other" else []
        out += added
        left -= sum(map(len, added)) + len(added)
    return "\n".join(out)[:size] + "\n"


if __name__ == "__main__":
    main(__doc__, measure)
