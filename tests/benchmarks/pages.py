"""The page of a long session: how large it is, what it takes to make, and how soon a browser shows it.

    python tests/benchmarks/pages.py [--data DIR] [--short] [--check]

The first paint needs `playwright` and a Chromium on PATH; where they are not there, that row is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import shutil
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from measuring import Table, main, sessions, tell

from readcache import Policy, Session
from readcache.core.model.events import Record
from readcache.report.page.page import session_page

CALLS, SHORT = 5_000, 1_000
OPENED = 5  # times; each in a context of its own
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"


def measure(chosen: argparse.Namespace, table: Table) -> None:
    began = time.process_time()
    records = long_session(SHORT if chosen.short else CALLS, chosen.data)
    told = time.process_time() - began
    began = time.process_time()
    parts = [*session_page(records, "A long session", {})]
    made = time.process_time() - began
    size = sum(len(part.encode()) for part in parts)
    text = sum(len(getattr(record.event, "text", "").encode("utf-8", "replace")) for record in records)
    what = f"{len(records):,} events, {text / 1e6:.1f} MB of text"
    table.row("page, bytes beside the text that was shown", size / text, f"{size / 1e6:.1f} MB; {what}", most=2.5)
    table.row("page, time beside the session's own", made / told, f"{made:.1f} s of {told:.1f} s", most=1.5)
    tracemalloc.start()
    for _ in session_page(records, "A long session", {}):
        pass
    table.row("page, most memory beside the text", tracemalloc.get_traced_memory()[1] / text, most=1.0)
    tracemalloc.stop()
    if paints := list(first_paints("".join(parts))):
        note = f"worst {max(paints):.2f} s of {len(paints)}"
        table.row("page, first paint", statistics.median(paints), note, most=2.0, unit="s")


def long_session(calls: int, data: Path | None) -> list[Record]:
    """Sessions one after the other, each in a directory of its own, a compaction between them."""
    session = Session("/testbed", policy=Policy.named("max"))
    for index, told in enumerate(itertools.chain.from_iterable(itertools.repeat([*sessions(data)]))):
        for record in told:
            tell(session, {**record, "cwd": f"/testbed/{index}" if data is None else record.get("cwd")})
        session.compacted()
        if session.stats()["calls"] >= calls:
            return session.events()
    raise AssertionError("no sessions")


def first_paints(page: str) -> Iterator[float]:
    """Seconds from the beginning of the navigation."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        return
    from playwright.sync_api import sync_playwright

    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file, sync_playwright() as driver:
        file.write(page)
        file.flush()
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS.split())
        for _ in range(OPENED):
            opened = browser.new_context().new_page()
            opened.goto(Path(file.name).as_uri())
            script = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
            yield float(opened.evaluate(script))
            opened.context.close()
        browser.close()


if __name__ == "__main__":
    main(__doc__, measure)
