"""Ten thousand calls of 32 processes on one server: nothing is lost, nothing wrong, and its memory has a bound."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from readcache.core.model.events import Delivered
from readcache.core.model.unconfirmed import as_shown
from readcache.log.store import open_store
from readcache.serve import address
from tests.helpers.files import WATCHDOG
from tests.serve.conftest import TOP, ServerUnderTest

PROCESSES, CALLS = 32, 313
MOST_MEGABYTES = 150  # of a server with 32 readers; 35 are Python's and ours without any


def start_readers(at: ServerUnderTest, wave: int = 0) -> list[subprocess.Popen[bytes]]:
    """Each in a session of its own, which nobody had before."""
    words = [sys.executable, "-m", "tests.serve.many_calls"]
    return [
        subprocess.Popen(
            [*words, f"session {wave}.{n}", str(CALLS)],
            cwd=TOP,
            env=at.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for n in range(PROCESSES)
    ]


def kinds_of(readers: list[subprocess.Popen[bytes]]) -> Counter[str]:
    """What all of them were answered, in their order. Fails with what the first of them found wrong."""
    kinds: Counter[str] = Counter()
    for reader in readers:
        out, err = reader.communicate(timeout=WATCHDOG)
        assert reader.returncode == 0, err.decode()
        kinds.update(json.loads(out))
    return kinds


def megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_wrong(at: ServerUnderTest, record_property: Callable[[str, object], None]) -> None:
    pid = at.start()
    kinds = kinds_of(start_readers(at))
    assert sum(kinds.values()) == PROCESSES * CALLS
    record_property("processes", PROCESSES)
    record_property("calls", PROCESSES * CALLS)
    record_property("omissions", kinds["T"])
    assert kinds["-"] == 0
    assert kinds["T"] > PROCESSES * CALLS * 0.2, "every other repeat is answered in full"
    assert at.wait() == pid
    assert megabytes(pid) < MOST_MEGABYTES
    assert at.readcache("serve", "--stop").returncode == 0, "what it was told last is logged when it has ended"
    stored = 0
    with closing(open_store(at.store)) as store:
        for session, *_ in store.sessions():
            records = list(store.records(session))
            events = [record.event for record in as_shown(records)]
            assert len(events) == CALLS
            bare = [event for event in events if not (isinstance(event, Delivered) and event.text)]
            assert not bare, "each with what was shown"
            stored += len(records)
    record_property("events", stored)


@pytest.mark.slow
def test_with_a_server_that_is_killed_every_second_nothing_is_wrong(
    at: ServerUnderTest, record_property: Callable[[str, object], None]
) -> None:
    killed, waves, kinds = 0, 0, Counter[str]()
    deadline = time.monotonic() + WATCHDOG
    while killed < 3 or not kinds["T"]:
        assert time.monotonic() < deadline, f"{killed} servers killed, answers {kinds}"
        readers, waves = start_readers(at, waves), waves + 1
        while any(reader.poll() is None for reader in readers) and time.monotonic() < deadline:
            time.sleep(1)
            killed += kill_server(at)
        kinds += kinds_of(readers)
    record_property("kills", killed)
    record_property("processes", waves * PROCESSES)
    record_property("calls", waves * PROCESSES * CALLS)
    record_property("omissions", kinds["T"])
    assert sum(kinds.values()) == waves * PROCESSES * CALLS


def kill_server(at: ServerUnderTest) -> bool:
    """False where there was none."""
    with contextlib.suppress(address.NoServer, ProcessLookupError, OSError):
        connection = address.reach(at.path, 1)
        pid, _ = address.peer(connection)
        connection.close()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            return True
    return False
