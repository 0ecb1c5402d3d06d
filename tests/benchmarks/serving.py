"""What a hook costs whom a server answers, beside a start of nothing and of Python; and what that costs with a large
store, many conversations, and metrics.

python tests/benchmarks/serving.py [--short] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from measuring import Table, in_turns, main, quartiles

from readcache import Session, __version__
from readcache.cli.shim_files import find_client
from readcache.hosts import find_host
from readcache.serve import address, frames
from readcache.serve.address import server_paths

PAUSE = 0.02  # seconds between two events; no agent calls tools without a pause


def measure(chosen: argparse.Namespace, table: Table) -> None:
    rounds = 60 if chosen.short else 400
    with tempfile.TemporaryDirectory() as directory:
        os.environ |= {"XDG_STATE_HOME": directory, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        for name in [name for name in os.environ if name.startswith("READCACHE")]:
            del os.environ[name]
        path, store = server_paths("")
        asks = _Asks(Path(directory), path, store)
        try:
            by_process(asks, rounds, table)
            beside_nothing(asks, rounds, table)
            with_metrics(asks, rounds, table)
            by_size(asks, rounds, 2_000 if chosen.short else 20_000, table)
        finally:
            subprocess.run([sys.executable, "-m", "readcache", "serve", "--stop"], check=False, capture_output=True)


class _Asks:
    """Hook events of conversations, of which the server is to be asked."""

    def __init__(self, top: Path, path: str, store: str) -> None:
        self.top, self.path, self.store = top, path, store
        self._events = [dict(event) for event in find_host("codex").trial(str(top))]
        self._next = 0

    def event(self, conversation: str = "one", number: int = 1) -> bytes:
        """An event of a call with an id of its own."""
        self._next += 1
        return json.dumps({**self._events[number], "session_id": conversation}).encode()

    def start(self) -> None:
        """Starts the server, and waits until it is there."""
        address.start(self.path, self.store)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                address.reach(self.path, 1).close()
                return
            except address.NoServer:
                time.sleep(0.05)

    def ask(self, event: bytes) -> float:
        """Milliseconds until the answer is there, without a start of anything."""
        began = time.perf_counter()
        with closing(address.reach(self.path, 60)) as connection:
            head = frames.head_texts((__version__, "hook", self.store, "/", ""), (), ("codex",), ())
            connection.sendall(frames.frame(frames.FIRST, head) + frames.frame(b"I", event))
            while frames.read_frame(connection, 1 << 26)[0] == frames.TAKEN:
                continue
            took = time.perf_counter() - began
            frames.send_frame(connection, b"S")
        time.sleep(PAUSE)
        return took * 1000


def by_process(asks: _Asks, rounds: int, table: Table) -> None:
    """One event through real pipes."""
    python = [sys.executable, "-m", "readcache", "hook", "codex"]
    off = {**os.environ, "READCACHE_SERVER": "off"}
    few = max(10, rounds // 8)
    ways: dict[str, tuple[list[str], Mapping[str, str], int]] = {
        "a start of true": (["true"], os.environ, rounds),
        "a start of Python": ([sys.executable, "-c", "pass"], os.environ, few),
        "hook, Python, no server": (python, off, few),
        "hook, Python, by a server": (python, os.environ, few),
    }
    asks.start()
    if client := find_client():
        ways["hook, client, by a server"] = ([client, *python], os.environ, rounds)
    asks.ask(asks.event(number=0))
    for name, (words, env, count) in ways.items():
        took = milliseconds(lambda words=words, env=env: piped(words, asks.event(), env), count)  # type: ignore[misc]
        is_ours = name.startswith("hook, client")
        table.row(name, statistics.median(took), quartiles(took), most=5 if is_ours else None, unit="ms")
        if is_ours:
            last = sorted(took)[len(took) * 99 // 100]
            table.row(f"{name}, 99th percentile", last, most=20, unit="ms")


def beside_nothing(asks: _Asks, rounds: int, table: Table) -> None:
    """A hook by the client, and a C program that does nothing, in turns; each with an event on stdin."""
    client, nothing = find_client(), asks.top / "nothing"
    if not client or not shutil.which("cc"):
        return
    source = b"int main(void) { return 0; }"
    subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", str(nothing)], input=source, check=True)
    event = asks.top / "event.json"
    words = [client, sys.executable, "-m", "readcache", "hook", "codex"]

    def between() -> None:
        event.write_bytes(asks.event())
        time.sleep(PAUSE)

    wall, _ = in_turns(lambda: spawned(words, event), lambda: spawned([str(nothing)], event), rounds, between)
    note = f"quartiles {quartiles(wall)}"
    table.row("hook, client, beside a C program of nothing", statistics.median(wall), note, most=3)


def spawned(words: list[str], event: Path) -> bytes:
    """What a program prints; with less between than `subprocess` has."""
    mine, theirs = os.pipe()
    actions = [(os.POSIX_SPAWN_OPEN, 0, str(event), os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, theirs, 1)]
    pid = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
    os.close(theirs)
    with open(mine, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return data


def with_metrics(asks: _Asks, rounds: int, table: Table) -> None:
    """The same event, in turns, by a server that counts for Prometheus and is scraped, and by one that does not."""
    counting = _Asks(asks.top, *server_paths(str(asks.top / "counted.db")))
    words = ["serve", "--on-demand", "--store", counting.store, "--metrics", "127.0.0.1:0"]
    with subprocess.Popen([sys.executable, "-m", "readcache", *words], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = server.stderr.readline().split()[-1]
        counting.start()
        counting.ask(counting.event(number=0))
        ratios = []
        for round_ in range(rounds):
            if not round_ % 20:  # at a call in 20: an agent's take seconds, and so do scrapes
                urllib.request.urlopen(url).close()
            sides = {who: who.ask(who.event()) for who in ((asks, counting) if round_ % 2 else (counting, asks))}
            ratios.append(sides[counting] / sides[asks])
        server.terminate()
    table.row("with metrics, beside without", statistics.median(ratios), f"quartiles {quartiles(ratios)}", most=1.05)


def by_size(asks: _Asks, rounds: int, many: int, table: Table) -> None:
    """The same event where the store holds much that is others', and where many conversations are held."""

    def median() -> float:
        return statistics.median(asks.ask(asks.event()) for _ in range(rounds))

    few = median()
    text = "".join(f"line {number} of what others read\n" for number in range(40))
    for number in range(many // 500):
        with Session("/", session_id=f"other {number}", store=asks.store) as session:
            for call in range(500):
                session.observe(f"cat file{call}", f"{call} of {number}\n{text}")
    table.row(f"a store with {many} calls of others", median() / few, f"beside {few:.2f} ms", most=1.5)
    for number in range(120):
        asks.ask(asks.event(f"conversation {number}"))
    table.row("100 conversations held", median() / few, f"beside {few:.2f} ms", most=1.5)


def piped(words: list[str], event: bytes, env: Mapping[str, str]) -> None:
    subprocess.run(words, input=event, env=env, capture_output=True, check=True)


def milliseconds(way: Callable[[], object], rounds: int) -> list[float]:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        way()
        took.append((time.perf_counter() - began) * 1000)
        time.sleep(PAUSE)
    return took


if __name__ == "__main__":
    main(__doc__, measure)
