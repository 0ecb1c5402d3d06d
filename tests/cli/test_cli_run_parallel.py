"""Several processes on one store: none waits for what another one's reader does."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from readcache.log.store.sqlite import SqliteStore
from tests.helpers.files import wait_for

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(params=["python", "client"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways have the same streams, signals and status."""
    return str(request.param)


BIG = "".join(f"line {n} of a file that is larger than a pipe holds\n" for n in range(6_000))


def store_of(work: Path) -> Path:
    return work.parent / "state/readcache/readcache.db"


def test_who_does_not_read_its_output_stops_no_other_session(start: Start, run: Run, work: Path) -> None:
    (work / "big").write_text(BIG)
    with start("run", "--session", "one", "-c", "cat big; echo > printed") as slow:
        wait_for(work / "printed")
        assert slow.stdout is not None
        assert slow.stdout.read(1) == b"l"  # it is being printed now, and the pipe is full
        with closing(sqlite3.connect(store_of(work), isolation_level=None, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")  # nobody has the lock
        replies = [run("run", "--session", "two", "-c", "cat f") for _ in range(2)]
        told = run("compacted", "--session", "two")
        assert replies[1].stdout.startswith(b"[FILE_UNCHANGED ")
        assert told.returncode == 0
        again = run("run", "--session", "two", "-c", "cat f")
        assert again.stdout == (work / "f").read_bytes()  # the compaction was recorded
        assert slow.poll() is None
        assert b"l" + slow.stdout.read() == BIG.encode()
    assert run("run", "--session", "one", "-c", "cat big").stdout.startswith(b"[FILE_UNCHANGED ")


def test_who_is_killed_while_it_prints_has_shown_nothing(start: Start, run: Run, work: Path) -> None:
    (work / "big").write_text(BIG)
    with start("run", "-c", "cat big") as slow:
        assert slow.stdout is not None
        assert slow.stdout.read(1) == b"l"
        slow.kill()
        slow.wait()
    assert run("run", "-c", "cat big").stdout == BIG.encode()


@pytest.mark.slow
def test_a_store_that_stays_locked_is_waited_for_once(run: Run, work: Path) -> None:
    run("run", "-c", "cat f")
    with closing(SqliteStore(store_of(work))) as store, store.transaction():
        before = time.monotonic()
        assert run("run", "-c", "cat f").stdout == (work / "f").read_bytes()
        assert run("run", "-c", "echo x > g").returncode == 0
        assert time.monotonic() - before < 20  # once five seconds for each of the two; twice were twenty
