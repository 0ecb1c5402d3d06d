"""Many at once: processes and threads on one session and on many. Nothing is lost, and each marker names what its
reader has before it when the calls of that moment have all come back."""

from __future__ import annotations

import multiprocessing
import random
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from readcache import Omitted, Reply, Session
from readcache.core.model.spec.marker import demand
from readcache.core.model.spec.world import World
from readcache.log.store import redis, redis_server, sqlite_file
from readcache.log.store.sqlite import SqliteStore
from tests.helpers.files import WATCHDOG, text

FILES = {f"f{n}": text(of=f"f{n}") for n in range(6)}
ROUNDS = 12
Reader = tuple[str, str]  # a session and an agent
Ask = Callable[[Reader, str, str, str], Reply]
_path: str | None = None
_sessions: dict[Reader, Session] = {}  # of this process


def begin(path: str) -> None:
    """In a process of a crowd, before its first call."""
    global _path
    _path = path
    sqlite_file.BUSY_SECONDS = redis.WAIT_SECONDS = redis_server.DEADLINE = 100.0  # the machine may be busy


def ask(reader: Reader, call_id: str, command: str, output: str) -> Reply:
    """One call of a process that goes on with its sessions."""
    if reader not in _sessions:
        _sessions[reader] = Session("/w", session_id=reader[0], agent_id=reader[1], store=_path)
    return _sessions[reader].observe(command, output, call_id=call_id)


def processes(path: Path | str, count: int) -> ProcessPoolExecutor:
    """Forks of a process that has imported this module, and nothing else of ours."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(count, mp_context=context, initializer=begin, initargs=(str(path),))


def a_read(rng: random.Random) -> tuple[str, str]:
    """A command, and what it prints."""
    name, first = rng.choice([*FILES]), rng.randint(1, 20)
    if rng.random() < 0.4:
        return f"cat {name}", FILES[name]
    return f"sed -n '{first},$p' {name}", "".join(FILES[name].splitlines(True)[first - 1 :])


def crowd(executor: Executor, ask: Ask, readers: list[Reader]) -> int:
    """In each round a call of each reader, all at once. What they come to, proven: how many left something out."""
    rng, omitted, worlds = random.Random(0), 0, defaultdict[Reader, World](World)
    for round_ in range(ROUNDS):
        asked = [(reader, f"{round_}.{number}", *a_read(rng)) for number, reader in enumerate(readers)]
        replies = list(executor.map(ask, *zip(*asked, strict=True), timeout=WATCHDOG))
        for (reader, call_id, _, output), reply in zip(asked, replies, strict=True):
            assert reply.full_text == output
            sources = [name for part in reply.segments if isinstance(part, Omitted) for name in part.sources]
            assert call_id not in sources
            worlds[reader].shown("", call_id, reply.text)
        for (reader, _, _, output), reply in zip(asked, replies, strict=True):
            demand(worlds[reader].answered("", reply, output))
            omitted += any(isinstance(part, Omitted) for part in reply.segments)
    return omitted


def stored_calls(path: Path) -> int:
    store = SqliteStore(path)
    sessions = dict.fromkeys(session for session, *_ in store.sessions())
    found = [
        (session, record.agent_id, call_id)
        for session in sessions
        for record in store.records(session)
        if (call_id := getattr(record.event, "call_id", ""))
    ]
    store.close()
    assert len(set(found)) == len(found)
    return len(found)


many = pytest.mark.parametrize("count", [4, pytest.param(32, marks=pytest.mark.slow)])
READERS: dict[str, Callable[[int], Reader]] = {
    "one session": lambda _: ("s", "main"),
    "sessions of their own": lambda number: (f"s{number}", "main"),
    "sub-agents of one session": lambda number: ("s", f"agent-{number}"),
}


@many
@pytest.mark.parametrize("kind", READERS)
def test_processes_at_once_lose_nothing_and_name_nothing_that_is_not_there(
    tmp_path: Path, count: int, kind: str, record_property: Callable[[str, object], None]
) -> None:
    path = tmp_path / "store.db"
    with processes(path, count) as executor:
        omitted = crowd(executor, ask, [READERS[kind](number) for number in range(count)])
    events = stored_calls(path)
    assert events == count * ROUNDS
    record_property("processes", count)
    record_property("calls", count * ROUNDS)
    record_property("events", events)
    record_property("omissions", omitted)
    assert omitted > count // 2


@many
@pytest.mark.parametrize("kind", ["one session", "sessions of their own"])
def test_threads_at_once_lose_nothing_and_name_nothing_that_is_not_there(
    count: int, kind: str, record_property: Callable[[str, object], None]
) -> None:
    sessions = {reader: Session("/w") for reader in {READERS[kind](number) for number in range(count)}}
    with ThreadPoolExecutor(count) as executor:
        omitted = crowd(
            executor,
            lambda reader, call_id, command, output: sessions[reader].observe(command, output, call_id=call_id),
            [READERS[kind](number) for number in range(count)],
        )
    assert sum(session.stats()["calls"] for session in sessions.values()) == count * ROUNDS
    record_property("calls", count * ROUNDS)
    record_property("omissions", omitted)
    assert omitted > count // 2
