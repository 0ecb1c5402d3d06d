"""Whether a call costs more late in a session: after 100,000 deliveries beside after 1,000.

    python tests/benchmarks/scale.py [--short] [--check]

Both sessions are built alike and then asked in turns. `--short` has 10,000 deliveries instead.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measuring import Table, main, quartiles

from readcache import Policy, Session

FEW = 1_000
Ask = Callable[[Session], object]


def measure(chosen: argparse.Namespace, table: Table) -> None:
    many = 10_000 if chosen.short else 100_000
    mixes = {
        "all different files": different_files,
        "few files, many ranges": many_ranges,
        "few files, their middles again": same_ranges,
        "one file, edited again and again": edited_again,
        "few files by a numbered and a raw form": mixed_forms,
        "other output": other_output,
    }
    for name, mix in mixes.items():
        compare(table, name, mix, many, None, Policy())
    compare(table, "all different files, delta", different_files, many, None, Policy(delta=True))
    compare(table, "one file edited again, delta", edited_again, many, None, Policy(delta=True))
    compare(table, "all different files, any_output", different_files, many, None, Policy(any_output=True))
    with tempfile.TemporaryDirectory() as directory:
        for name in ("all different files", "few files, many ranges", "one file, edited again and again"):
            compare(table, f"{name}, SQLite", mixes[name], many // 5, Path(directory), Policy())


def compare(
    table: Table, name: str, mix: Callable[[], Iterator[Ask]], many: int, directory: Path | None, policy: Policy
) -> None:
    """One row: the median cost of a call in the long session by that in the short one."""
    sides = []
    began = time.monotonic()
    for size in (FEW, many):
        asks = mix()
        store = None if directory is None else directory / f"{name}-{size}.db"
        session = Session("/", policy=policy, store=store)
        for ask in itertools.islice(asks, size):
            ask(session)
        sides.append((session, asks))
    took = time.monotonic() - began
    gc.collect()
    gc.freeze()  # a collection that walks the long session may not be counted to some call of the short one
    costs: list[list[float]] = [[], []]
    for round_ in range(600):
        for side in (0, 1) if round_ % 2 else (1, 0):
            session, asks = sides[side]
            ask = next(asks)
            began_cpu = time.thread_time()
            ask(session)
            costs[side].append((time.thread_time() - began_cpu) * 1e6)
    gc.unfreeze()
    short, long = (statistics.median(side) for side in costs)
    note = f"{short:.0f} -> {long:.0f} us at {many} ({quartiles(costs[1])}); means {mean_ratio(costs):.2f}"
    table.row(name, long / short, f"{note}; built in {took:.0f} s", most=1.5 if directory is None else None)
    for session, _ in sides:
        session.close()


def mean_ratio(costs: list[list[float]]) -> float:
    """By means, so that a rare dear call shows; the dearest percent is noise of the machine."""
    trimmed = [sorted(side)[: len(side) * 99 // 100] for side in costs]
    return statistics.mean(trimmed[1]) / statistics.mean(trimmed[0])


def lines(tag: object, first: int, count: int) -> str:
    return "".join(f"    line {n} of {tag}, with something to say\n" for n in range(first, first + count))


def read(path: str, start: int, end: int, version: int = 0) -> Ask:
    output = lines(f"{path} {version}", start, end - start + 1)
    return lambda session: session.observe_read(path, output, start=start, end=end)


def different_files() -> Iterator[Ask]:
    for n in itertools.count():
        yield read(f"/src/dir{n % 100}/file{n}.py", 1, 12)


def many_ranges() -> Iterator[Ask]:
    """New ranges all the time, in no order, none overlapping."""
    for n in itertools.count():
        start = 1 + n * 7919 % 1_000_003 * 20
        yield read(f"/src/file{n % 4}.py", start, start + 12)


def same_ranges() -> Iterator[Ask]:
    """The same hundred ranges of a few files, each time from another line on."""
    for n in itertools.count():
        start = 1 + n * 37 % 1000
        yield read(f"/src/file{n % 4}.py", start, start + 12)


def edited_again() -> Iterator[Ask]:
    """Read, write, read, ...: all the deliveries stay visible."""

    def edit_and_read(n: int) -> Ask:
        look = read("/src/app.py", 1, 12, n)

        def ask(session: Session) -> None:
            session.wrote("/src/app.py")
            look(session)

        return ask

    for n in itertools.count():
        yield edit_and_read(n)


def mixed_forms() -> Iterator[Ask]:
    """Reads with known and with unknown line numbers of the same files."""
    for n in itertools.count():
        path, start = f"/src/file{n % 4}.py", 1 + n * 7919 % 1_000_003 * 20
        if n % 2:
            yield read(path, start, start + 12)
        else:
            output = lines(f"{path} 0", start, 12)
            yield lambda session, path=path, output=output: session.observe(f"grep something {path}", output)  # type: ignore[misc]


def other_output() -> Iterator[Ask]:
    for n in itertools.count():
        output = lines(f"run {n}", 1, 12)
        yield lambda session, n=n, output=output: session.observe(f"make target{n}", output)  # type: ignore[misc]


if __name__ == "__main__":
    main(__doc__, measure)
