"""What a re-read of an unchanged file costs: `Session.read` beside `open().read()`, and beside another cache.

python tests/benchmarks/reading.py [--rival] [--short] [--check]

Each side reads the same file in the same process. In every round each is called once, in an order that turns, and timed
by itself; in between, and not timed, the agent looks at something else three times, or the same request again would be
answered in full. Every answer is checked to be the short one. A ratio is of the medians over all rounds; the one of the
fastest calls, which a busy machine disturbs less, stands beside it.

`--rival` needs Python 3.12 and `pip install "semantic-cache-mcp>=0.7,<0.8" .`. Its read tool is called as its worker
process calls it, with default settings and the `content_hash` that proves to it what the agent holds, but in this
process, so that its pipe, its daemon and MCP cost nothing. `smart_read`, on which that tool is built, is timed too; it
says "unchanged" to whoever asks, as long as the file's time is the same. A file of over 100,000 bytes gets no hash from
a plain read of the tool; that of the large one comes from a read of all its lines by range. Where its vocabulary cannot
be loaded from the network, it estimates tokens, which is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from measuring import Table, main, source

from readcache import Insist, Outcome, Policy, Session

Side = Callable[[], Any] | Callable[[], Awaitable[Any]]
# Lines; the milliseconds that a re-read may take, or how many times the cost of `open().read()`; rounds.
FILES = ((2_000, 1.0, None, 1_000), (100_000, None, 2.0, 150))
WARM_UP = 5  # rounds
RIVAL = "semantic-cache-mcp"
MOST_OF_RIVAL = 0.333  # our share of its time


def measure(chosen: argparse.Namespace, table: Table, *, with_rival: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(read_files(Path(directory), chosen, table, with_rival))


async def read_files(directory: Path, chosen: argparse.Namespace, table: Table, with_rival: bool) -> None:
    rival = Rival.load(directory / "rival") if with_rival else None
    for lines, most_ms, most, rounds in FILES:
        path = directory / f"{lines}.py"
        path.write_text("".join(line + "\n" for line in source(random.Random(1), lines)), encoding="utf-8")
        session = Session(directory, policy=Policy(insist=Insist.STUB))  # a marker each time
        session.read(path)
        sides: dict[str, Side] = {
            "readcache": partial(reread, session, path),
            "open().read()": partial(plain, path),
        }
        if rival is not None:
            content_hash = await rival.first_read(path)
            sides[f"{RIVAL}, read tool"] = partial(rival.reread, path, content_hash)
            sides[f"{RIVAL}, smart_read"] = partial(rival.smart_read, path)
        took = await in_rounds(sides, rounds // 5 if chosen.short else rounds, partial(look_around, session))
        report(f"{lines:,} lines", took, most_ms, most, table)
    if rival is not None:
        await rival.close()


def plain(path: Path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def reread(session: Session, path: Path) -> None:
    reply = session.read(path)
    assert reply.outcome is Outcome.UNCHANGED, reply.reason


def look_around(session: Session) -> None:
    for _ in range(3):
        session.observe("pwd", "/repo\n")


async def in_rounds(sides: dict[str, Side], rounds: int, between: Callable[[], None]) -> dict[str, list[float]]:
    """Milliseconds of each call of each side."""
    took: dict[str, list[float]] = {name: [] for name in sides}
    orders = itertools.cycle(itertools.permutations(sides.items()))
    waits = {name: inspect.iscoroutinefunction(getattr(side, "func", side)) for name, side in sides.items()}
    for round_ in range(rounds + WARM_UP):
        for name, side in next(orders):
            between()
            began = time.perf_counter()
            if waits[name]:
                await side()
            else:
                side()
            spent = time.perf_counter() - began
            if round_ >= WARM_UP:
                took[name].append(spent * 1000)
    return took


def report(what: str, took: dict[str, list[float]], most_ms: float | None, most: float | None, table: Table) -> None:
    for name, times in took.items():
        limit = most_ms if name == "readcache" else None
        table.row(f"{what}: {name}", statistics.median(times), f"fastest {min(times):.3f}", most=limit, unit="ms")
    ours, *others = took
    for other in others:
        target = most if other == "open().read()" else MOST_OF_RIVAL if other.endswith("read tool") else None
        median = statistics.median(took[ours]) / statistics.median(took[other])
        fastest = min(took[ours]) / min(took[other])
        table.row(f"{what}: against {other}", median, f"fastest {fastest:.3f}", most=target)


class Rival:
    """semantic-cache-mcp 0.7, in this process."""

    @classmethod
    def load(cls, directory: Path) -> Rival:
        """An empty cache in `directory`. Its package reads that setting, and begins to log, when it is imported."""
        os.environ["SEMANTIC_CACHE_DIR"] = str(directory)
        log = directory.with_suffix(".log").open("w")
        stderr, sys.stderr = sys.stderr, log
        try:
            cache = importlib.import_module("semantic_cache_mcp.cache")
            worker = importlib.import_module("semantic_cache_mcp.server._tool_worker")
            importlib.import_module("semantic_cache_mcp.core.tokenizer").get_tokenizer()
        finally:
            sys.stderr = stderr
        return cls(cache, worker)

    def __init__(self, cache: Any, worker: Any) -> None:
        self._smart_read = cache.smart_read
        self._dispatch = worker._dispatch_tool_request
        self._cache = cache.SemanticCache()

    async def _read(self, path: Path, **options: Any) -> dict[str, Any]:
        """As `_tool_worker` calls a tool; `compact` and no limit are the defaults."""
        given = {"path": str(path), **options}
        answer: dict[str, Any] = await self._dispatch(
            cache=self._cache, tool="read", kwargs=given, output_mode="compact", max_response_tokens=None
        )
        return answer

    async def first_read(self, path: Path) -> str:
        """The hash that proves that the agent holds all of the file."""
        answer = await self._read(path)
        if "content_hash" not in answer:
            answer = await self._read(path, offset=1)
        found: str = answer["content_hash"]
        return found

    async def reread(self, path: Path, content_hash: str) -> None:
        answer = await self._read(path, known_hash=content_hash)
        assert answer["unchanged"]
        assert "content" not in answer

    async def smart_read(self, path: Path) -> None:
        answer = await self._smart_read(self._cache, str(path))
        assert answer.content.startswith("// File unchanged")

    async def close(self) -> None:
        await self._cache.async_close()


if __name__ == "__main__":
    rival = "--rival" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--rival"]
    main(__doc__, partial(measure, with_rival=rival))
