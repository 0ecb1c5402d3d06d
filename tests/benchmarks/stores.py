"""The stores side by side: SQLite, and Redis on a server of its own, which has to be on PATH.

    PYTHONPATH=. python tests/benchmarks/stores.py [--data DIR] [--short] [--check]
    PYTHONPATH=. python tests/benchmarks/stores.py --gigabytes 1     # stores with 1 MB and with so much in them

Latency of a call, of a session that goes on and of one that is opened for the call, as `readcache run` does; events a
second of 1, 8 and 32 processes, each a transaction that reads and appends; bytes of a session beside what it showed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import Record, Table, main, sessions, tell

from readcache import Session
from readcache.core.model.events import Delivered, MappedSpan
from readcache.log.store import open_store
from readcache.log.store.redis import RedisStore
from readcache.log.store.sqlite import SqliteStore
from tests.helpers.one_call import one_call_session
from tests.helpers.redis_server import PROGRAM, Server

TEXT_BYTES = 2_000  # of an event; the median result of the recordings
WRITERS = (1, 8, 32)  # processes


def measure(chosen: argparse.Namespace, table: Table) -> None:
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as ends:
        if options.gigabytes:
            grown(table, Path(directory), options.gigabytes)
            return
        stores: dict[str, str | None] = {"memory": None, "SQLite": f"{directory}/store.db"}
        if PROGRAM is None:
            print("no redis-server or valkey-server on PATH: SQLite alone")
        else:
            for name, keep in (("Redis", "no"), ("Redis, each write on disk", "yes")):
                server = Server("--appendonly", keep)
                ends.callback(server.close)
                stores[name] = server.url
        recorded = list(sessions(chosen.data, 8 if chosen.data is None else 60))[: 2 if chosen.short else 40]
        latencies(table, stores, recorded)
        sizes(table, stores, recorded)
        for kind in ("sessions of their own", "one session"):
            for count in WRITERS[:2] if chosen.short else WRITERS:
                for name, spec in stores.items():
                    if spec is not None:
                        rate = events_a_second(spec, count, kind == "one session", 1.0 if chosen.short else 2.0)
                        table.row(f"{name}, {count} writers, {kind}", rate, unit="/s")


# ---------------------------------------------------------------- latency


def latencies(table: Table, stores: dict[str, str | None], recorded: list[list[Record]]) -> None:
    for one_shot in (False, True):
        times: dict[str, list[float]] = {name: [] for name in stores if stores[name] or not one_shot}
        for number, records in enumerate(recorded):
            for name in sorted(times, key=lambda _: random.random()):
                times[name] += timed(stores[name], f"{number}-{one_shot}", records, one_shot)
        for name, taken in times.items():
            what = "of a session opened for it" if one_shot else "of a session that goes on"
            low, high = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
            table.row(f"{name}: a call {what}", low, f"99th percentile {high:.2f} ms, {len(taken)} calls", unit="ms")


def timed(spec: str | None, name: str, records: list[Record], one_shot: bool) -> list[float]:
    """Milliseconds of each call."""
    found, session = [], Session("/testbed", session_id=name, store=spec)
    for record in records:
        began = time.perf_counter()
        if one_shot:
            with one_call_session(spec, name, "/testbed") as session:
                tell(session, record)
        else:
            tell(session, record)
        found.append(1000 * (time.perf_counter() - began))
    session.close()
    return found


# ---------------------------------------------------------------- writers


def events_a_second(spec: str, count: int, shared: bool, seconds: float) -> float:
    spawned = multiprocessing.get_context("spawn")
    ready, results = spawned.Barrier(count), spawned.Queue()
    run = f"{random.random()}"
    processes = [
        spawned.Process(target=write, args=(spec, run if shared else f"{run}-{n}", seconds, ready, results))
        for n in range(count)
    ]
    for process in processes:
        process.start()
    rate: float = sum(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    return rate


def write(spec: str, session: str, seconds: float, ready: Any, results: Any) -> None:
    """Puts the events that it wrote in a second, with those that failed."""
    store, after, agent = open_store(spec), 0, str(os.getpid())
    texts = [prose(random.Random(n), TEXT_BYTES) for n in range(50)]
    store.append(session, agent, [event(texts, 0)], time.time())
    ready.wait(60)
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        with store.transaction():
            for record in store.records(session, agent, after=after):
                after = record.seq
            after = store.append(session, agent, [event(texts, done)], time.time())
        done += 1
    results.put(done / (time.monotonic() - began))


def event(texts: list[str], number: int) -> Delivered:
    text, path = texts[number % len(texts)], f"/w/f{number % 50}"
    return Delivered(f"call {number}", text, f"cat {path}", source_map=(MappedSpan((path,), 0, 1, text.count("\n")),))


def prose(rng: random.Random, size: int) -> str:
    words = ["self", "return", "value", "=", "None", "if", "not", "in", "items", "(", ")", "def", "name", "import"]
    lines = iter(lambda: " ".join(rng.choices(words, k=8)) + f" {rng.random()}\n", "")
    out = ""
    while len(out) < size:
        out += next(lines)
    return out


# ---------------------------------------------------------------- sizes


def sizes(table: Table, stores: dict[str, str | None], recorded: list[list[Record]]) -> None:
    shown = 0
    for records in recorded:
        with Session("/testbed") as session:
            for record in records:
                tell(session, record)
            events = session.events()
            shown += sum(len(getattr(r.event, "text", "").encode("utf-8", "replace")) for r in events)
    table.row("texts of a session, UTF-8", shown / len(recorded) / 1000, f"{len(recorded)} sessions", unit="KB")
    for name, spec in stores.items():
        if spec is None or name.startswith("Redis, "):
            continue
        where = f"{spec}&prefix=sizes" if "socket" in spec else f"{spec}-sizes.db"
        for number, records in enumerate(recorded):
            timed(where, f"{number}", records, False)
        store: Any = open_store(where)
        table.row(f"{name}: bytes of a session", store.used_bytes() / len(recorded) / 1000, unit="KB")
        store.close()


# ---------------------------------------------------------------- SQLite, small and large


def grown(table: Table, directory: Path, gigabytes: float) -> None:
    """The same call in a store of 1 MB and in a large one, in turns."""
    large = f"{gigabytes:g} GB"
    with contextlib.ExitStack() as ends:
        kinds = {"SQLite": {"1 MB": f"{directory}/small.db", large: f"{directory}/large.db"}}
        if PROGRAM is not None:
            servers = {size: Server("--appendonly", "no") for size in kinds["SQLite"]}
            for server in servers.values():
                ends.callback(server.close)
            kinds["Redis"] = {size: server.url for size, server in servers.items()}
        for kind, specs in kinds.items():
            bytes_of = {size: fill(specs[size], 1e6 if size == "1 MB" else gigabytes * 1e9) for size in specs}
            for one_shot in (False, True):
                times: dict[str, list[float]] = {size: [] for size in specs}
                for number, records in enumerate(itertools.islice(sessions(None), 10)):
                    for size, spec in random.sample(list(specs.items()), 2):
                        times[size] += timed(spec, f"new {number} {one_shot}", records, one_shot)
                for size, taken in times.items():
                    note = f"99th percentile {statistics.quantiles(taken, n=100)[98]:.2f} ms, {bytes_of[size]:,} B"
                    what = "opened for it" if one_shot else "goes on"
                    table.row(f"{kind} with {size}: a call, session {what}", statistics.median(taken), note, unit="ms")
                ratio = statistics.median(times[large]) / statistics.median(times["1 MB"])
                table.row("  the large one beside the small one", ratio, most=1.5)


def fill(spec: str, size: float) -> int:
    """Puts other sessions into a store until it holds so many bytes; how many there are."""
    store, rng = open_store(spec), random.Random(0)
    assert isinstance(store, RedisStore | SqliteStore)
    with contextlib.closing(store):
        for number in itertools.count():
            with store.transaction():
                texts = [prose(rng, 40_000) for _ in range(5)] + [rng.randbytes(20_000).hex() for _ in range(45)]
                store.append(f"old {number}", "main", [event(texts, n) for n in range(50)], time.time())
            if number % 20 == 0 and (used := store.used_bytes()) > size:
                return used
    raise AssertionError


def options_of() -> Any:
    """Our own option, taken out of the command line."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--gigabytes", type=float, default=0.0)
    found, sys.argv[1:] = parser.parse_known_args()
    return found


options = options_of() if __name__ == "__main__" else argparse.Namespace(gigabytes=0.0)
if __name__ == "__main__":
    main(__doc__, measure)
