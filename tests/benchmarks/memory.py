"""What a session holds in memory, beside the text that it showed (in UTF-8 bytes).

    python tests/benchmarks/memory.py [--data DIR] [--short] [--check]

Each mix runs in a process of its own: once traced by tracemalloc, once by the resident size that the kernel reports.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from measuring import Table, main, sessions, source, tell

from readcache import Policy, Reply, Session

Call = Callable[[Session], Reply | None]
POLICIES = {
    "default": Policy(),
    "delta": Policy(delta=True),
    "any_output": Policy(any_output=True),
}


def measure(chosen: argparse.Namespace, table: Table) -> None:
    megabytes = 4 if chosen.short else 20
    names = ["recorded"] if chosen.data is not None else []
    for name in [*names, *MIXES]:
        for policy in POLICIES:
            traced, resident = (of_child(chosen, name, policy, megabytes, way) for way in ("traced", "resident"))
            note = f"resident {resident['ratio']:.2f}x, {traced['calls']} calls, {traced['shown'] / 1e6:.1f} MB shown"
            target = 3.0 if policy == "default" else None
            table.row(f"memory, {name}, {policy}", traced["ratio"], note, most=target)


def of_child(chosen: argparse.Namespace, name: str, policy: str, megabytes: int, way: str) -> dict[str, float]:
    data = [] if chosen.data is None else [str(chosen.data)]
    command = [sys.executable, __file__, "--child", name, policy, str(megabytes), way, *data]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def child(name: str, policy: str, megabytes: str, way: str, data: str = "") -> None:
    """Goes on with the mix until so many megabytes were shown, and prints what is held then."""
    calls = recorded(Path(data)) if name == "recorded" else MIXES[name]()
    session = Session("/")
    for call in itertools.islice(calls, 20):  # modules, compiled patterns and the like are not the session's
        call(session)
    del session, call
    gc.collect()
    if way == "traced":
        tracemalloc.start()
    began = used_memory(way)
    session = Session("/", policy=POLICIES[policy])
    shown = count = 0
    for call in calls:
        reply = call(session)
        if reply is not None:
            shown += len(reply.text.encode("utf-8", "surrogatepass"))
            count += 1
        del call, reply
        if shown > int(megabytes) * 1_000_000:
            break
    gc.collect()
    print(json.dumps({"ratio": (used_memory(way) - began) / shown, "shown": shown, "calls": count}))


def used_memory(way: str) -> int:
    """Bytes now in use."""
    if way == "traced":
        return tracemalloc.get_traced_memory()[0]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


# ---------------------------------------------------------------- mixes


def recorded(data: Path) -> Iterator[Call]:
    """All the recorded sessions as if they were one, whose history is never rewritten."""
    for records in sessions(data):
        for record in records:
            if record["tool"] != "_compact":
                yield lambda session, record=record: tell(session, record)  # type: ignore[misc]


def whole_files(extra: str = "", *, count: int = 300) -> Iterator[Call]:
    """Different files, each shown whole."""
    rng = random.Random(1)
    n = 0
    while True:
        n += 1
        lines = source(rng, count)
        output = "".join(line + "\n" for line in lines) + extra
        yield lambda session, n=n, output=output: session.observe(f"cat src/file{n}.py", output)  # type: ignore[misc]


def ranges() -> Iterator[Call]:
    """Short ranges of files that were seen in part: many partial replies."""
    rng = random.Random(2)
    while True:
        k = rng.randrange(400)
        start = rng.randrange(1, 2900)
        end = start + rng.randint(20, 100)
        output = "".join(f"    line {n} of file {k}, with {n * k} to say\n" for n in range(start, end + 1))
        yield lambda session, k=k, start=start, end=end, output=output: session.observe(  # type: ignore[misc]
            f"sed -n '{start},{end}p' src/file{k}.py", output
        )


def edited() -> Iterator[Call]:
    """Files that are changed and read again: every version stays visible."""
    rng = random.Random(3)
    lines = source(rng, 300)
    while True:
        lines[rng.randrange(len(lines))] = f"changed = {rng.random()}"
        output = "".join(line + "\n" for line in lines)
        yield lambda session: session.wrote("/src/app.py")
        yield lambda session, output=output: session.observe("cat /src/app.py", output)  # type: ignore[misc]


MIXES: dict[str, Callable[[], Iterator[Call]]] = {
    "source": whole_files,
    "short files": lambda: whole_files(count=30),
    "one emoji in each file": lambda: whole_files("# done \U0001f389\n"),
    "one dash in each file": lambda: whole_files("# done \u2014 or not\n"),
    "ranges": ranges,
    "edited again": edited,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main(__doc__, measure)
