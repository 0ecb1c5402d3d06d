"""8 processes of 4 threads each on one session, by every door: no call points at one made after it had begun."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from readcache import Session
from readcache.core.model.events import Delivered
from readcache.log.store import sqlite_file
from tests.helpers.files import WATCHDOG, text

FILES = {f"f{n}": text(of=f"f{n}") for n in range(6)}
PROCESSES, THREADS, CALLS = 8, 4, 15


class Made(NamedTuple):
    """A call: when the harness made it, and when its command ran, if it has one."""

    call_id: str
    door: str
    made: float
    ran: float | None


BUSY = 100.0  # seconds: the machine may be busy, and a call that cannot be logged in time is not in the log
COMMAND_LINE = f"""
from readcache.log.store import sqlite_file
sqlite_file.BUSY_SECONDS = {BUSY}
from readcache.cli.start import start_command_line
start_command_line()
"""


def begin() -> None:
    sqlite_file.BUSY_SECONDS = BUSY


def work(root: Path, store: str, process: int) -> list[Made]:
    session = Session(root, session_id="s", store=store)
    with ThreadPoolExecutor(THREADS) as threads:
        made = threads.map(lambda thread: [*_calls(session, root, store, f"{process}.{thread}")], range(THREADS))
    return [call for calls in made for call in calls]


def _calls(session: Session, root: Path, store: str, name: str) -> list[Made]:
    rng, calls = random.Random(name), []
    for n in range(CALLS):
        call_id, door = f"{name}.{n}", rng.choice(["run", "read", "observe", "command line"])
        file, first = rng.choice([*FILES]), rng.randint(1, 20)
        output = "".join(FILES[file].splitlines(True)[first - 1 :])
        command, stamp = f"sed -n '{first},$p' {file}", root / f"ran.{call_id}"
        stamped = f"date +%s.%N > {stamp.name}; {command}"
        made = time.time()
        if door == "run":
            assert session.run(stamped, call_id=call_id).full_text == output
        elif door == "read":
            assert session.read(file, start=first, call_id=call_id).full_text == output
        elif door == "observe":
            assert session.observe(command, output, call_id=call_id).full_text == output
        else:
            _run_by_command_line(root, store, call_id, stamped)
        ran = float(stamp.read_text()) if stamp.exists() else None
        calls.append(Made(call_id, door, made, ran))
    return calls


def _run_by_command_line(root: Path, store: str, call_id: str, command: str) -> None:
    environ = {**os.environ, "READCACHE_SESSION": "s", "READCACHE_STORE": store, "READCACHE": "on"}
    words = [sys.executable, "-c", COMMAND_LINE, "run", "--call-id", call_id, "-c", command]
    subprocess.run(words, cwd=root, env=environ, check=True, capture_output=True, timeout=WATCHDOG)


@pytest.mark.slow
def test_no_call_of_a_crowd_points_at_one_that_was_made_after_it_had_begun(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    store = str(tmp_path / "store.db")
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=spawned, initializer=begin) as executor:
        done = executor.map(partial(work, tmp_path, store), range(PROCESSES), timeout=WATCHDOG)
        calls = {call.call_id: call for calls in done for call in calls}
    with Session(tmp_path, session_id="s", store=store) as session:
        events = {r.event.call_id: r.event for r in session.events() if isinstance(r.event, Delivered)}
    assert events.keys() == calls.keys()
    sources = {name: {s for marker in event.markers for s in marker.sources} for name, event in events.items()}
    for name, found in sources.items():
        when, ran = events[name].when, calls[name].ran
        for source in found:
            assert events[source].when.call <= (when.started if when.started >= 0 else when.call - 1)
            assert ran is None or calls[source].made < ran, f"{calls[name]} points at {calls[source]}"
    omitted = sum(map(bool, sources.values()))
    record_property("calls", len(calls))
    record_property("omissions", omitted)
    assert omitted > len(calls) // 4
