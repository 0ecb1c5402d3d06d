"""What a sync of a long conversation costs, and a view of a long log: folded anew, and one call later.

    python tests/benchmarks/syncing.py [--short] [--check]

The conversation has 2,000 messages (1,000 calls, one in five answered with a marker), as objects that are the same each
time and as equal ones that were built anew. The log has 100,000 events; `--short` has 10,000.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from measuring import Table, main, quartiles
from scale import different_files, edited_again, lines, many_ranges, other_output

from readcache import Session
from readcache.core.model.view import View
from readcache.core.sync.sync import Reconciler
from readcache.log.store.protocol import MemoryStore

CALLS = 1_000
SHAPES = ("OpenAI", "Anthropic", "no ids")


def measure(chosen: argparse.Namespace, table: Table) -> None:
    rounds = 20 if chosen.short else 60
    for shape in SHAPES:
        syncing(table, shape, rounds)
    folding(table, 10_000 if chosen.short else 100_000)


# ---------------------------------------------------------------- syncs


def syncing(table: Table, shape: str, rounds: int) -> None:
    """Rows for one shape of messages."""
    session = Session("/", store=MemoryStore())
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Please fix the tax"}]
    for n in range(CALLS):
        messages += call(session, shape, n, n - n % 5 if n % 5 == 4 else n)
    reconciler = Reconciler()

    def sync() -> None:
        synced = reconciler.reconcile(session.view, messages, tag=session.tag)
        assert not synced.by_call, "nothing was taken away"
        assert not synced.events, "nothing was taken away"

    row(table, f"{shape}: first sync", [milliseconds(sync)])
    row(table, f"{shape}: the same objects", [milliseconds(sync) for _ in range(rounds)], most=2)
    times = []
    for n in range(CALLS, CALLS + rounds):
        messages += call(session, shape, n, n)
        times.append(milliseconds(sync))
    row(table, f"{shape}: one call more", times, most=2)
    text = json.dumps(messages)
    times = []
    for _ in range(rounds):
        messages = json.loads(text)
        times.append(milliseconds(sync))
    row(table, f"{shape}: equal objects", times, most=2)


def call(session: Session, shape: str, number: int, file: int) -> list[dict[str, Any]]:
    """One `cat` and its answer, put through the session: 40 lines, 1.6 KB."""
    command, call_id = f"cat src/file{file}.py", f"call_{number}"
    shown = session.observe(command, lines(f"file{file}", 1, 40), call_id=call_id).text
    if shape == "OpenAI":
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        asked: dict[str, Any] = {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}
        return [
            {"role": "assistant", "content": None, **asked},
            {"role": "tool", "tool_call_id": call_id, "content": shown},
        ]
    if shape == "Anthropic":
        use = {"type": "tool_use", "id": call_id, "name": "bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": shown}]}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return [
        {"role": "assistant", "content": f"I look.\n\n```bash\n{command}\n```"},
        {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{shown}</output>"},
    ]


# ---------------------------------------------------------------- views


def folding(table: Table, events: int) -> None:
    """Rows for logs of so many events."""
    for mix in (different_files, many_ranges, edited_again, other_output):
        store = MemoryStore()
        session = Session("/", session_id="s", store=store)
        for ask in itertools.islice(mix(), events // (2 if mix is edited_again else 1)):
            ask(session)
        log = [record.event for record in store.records("s")]
        gc.collect()
        gc.freeze()
        began = time.perf_counter()
        view = View()
        for event in log[:-100]:
            view.apply(event)
        took = time.perf_counter() - began
        each = [milliseconds(partial(view.apply, event)) * 1e3 for event in log[-100:]]
        gc.unfreeze()
        name = f"{mix.__name__}: {len(log):,} events"
        table.row(f"{name} folded anew", took, most=2 * events / 100_000, unit="s")
        table.row(f"{name}, one more", statistics.median(each), quartiles(each), most=100, unit="us")


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def row(table: Table, what: str, times: list[float], most: float | None = None) -> None:
    note = f"{quartiles(times)}" if len(times) > 1 else ""
    table.row(what, statistics.median(times), note, most=most, unit="ms")


if __name__ == "__main__":
    main(__doc__, measure)
