"""Crowds on one Redis server, which is killed and comes back under load."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from readcache import Outcome, Reply, Session
from readcache.core.model.spec.marker import demand
from readcache.core.model.spec.world import World
from readcache.log.store.redis import RedisStore
from tests.helpers.files import wait_until
from tests.helpers.redis_server import Server
from tests.session.test_crowds import READERS, ROUNDS, a_read, ask, crowd, many, processes

KILLS = 6
_session: Session | None = None  # of this process


@pytest.fixture(params=["keeps everything", "keeps nothing", "keeps what was saved at times"])
def mortal(request: pytest.FixtureRequest) -> Iterator[Server]:
    keeping = {"keeps everything": "yes", "keeps nothing": "no"}.get(request.param, "no")
    running = Server("--appendonly", keeping, *(("--save", "1 1") if "at times" in request.param else ()))
    yield running
    running.close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server("--appendonly", "no")
    yield running
    running.close()


@many
@pytest.mark.parametrize("kind", READERS)
def test_processes_at_once_lose_nothing_and_name_nothing_that_is_not_there(
    server: Server, count: int, kind: str, record_property: Callable[[str, object], None]
) -> None:
    with processes(server.url, count) as executor:
        omitted = crowd(executor, ask, [READERS[kind](number) for number in range(count)])
    store = RedisStore(server.url)
    calls = [
        (session, record.agent_id, record.event.call_id)
        for session in dict.fromkeys(context[0] for context in store.sessions())
        for record in store.records(session)
        if hasattr(record.event, "call_id")
    ]
    assert len(calls) == len(set(calls)) == count * ROUNDS
    record_property("processes", count)
    record_property("calls", count * ROUNDS)
    record_property("events", len(calls))
    record_property("omissions", omitted)
    assert omitted > count // 2


# ------------------------------------------------------------ killed under load


def begin(url: str, number: int) -> None:
    """In a process of its own: an agent, every second one of the same session."""
    global _session
    _session = Session("/w", session_id=f"s{number % 2}", agent_id=f"agent-{number}", store=url)


def turn(command: str, output: str, call_id: str, compacts: bool) -> tuple[Reply, float]:
    """One call, after a compaction or none; and the seconds that it took."""
    assert _session is not None
    began = time.monotonic()
    if compacts:
        _session.compacted()
    return _session.observe(command, output, call_id=call_id), time.monotonic() - began


def work(server: Server, number: int, made: list[int], stop: threading.Event) -> tuple[int, int, float]:
    """Calls until told to stop and until one left something out since the server was last there, each checked: their
    number, how many left something out, the longest. `made[number]` always says how many calls there were."""
    rng, world, calls, omitted, since, longest = random.Random(number), World(), 0, 0, 0, 0.0
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned, initializer=begin, initargs=(server.url, number)) as process:
        while not stop.is_set() or not since:
            command, output = a_read(rng)
            compacts = rng.random() < 0.1
            if compacts:
                world = World()
            reply, took = process.submit(turn, command, output, f"{number}.{calls}", compacts).result(60)
            assert reply.full_text == output
            demand(world.answered("main", reply, output))
            calls += 1
            made[number] = calls
            is_shortened = reply.outcome is not Outcome.FULL
            omitted += is_shortened
            since = since + is_shortened if stop.is_set() else 0
            longest = max(longest, took)
            assert calls < 100_000
    return calls, omitted, longest


def wait_for_calls(made: list[int], failed: list[BaseException]) -> None:
    """Until each process has made some more of them, or one has failed."""
    before = [*made]
    wait_until(lambda: bool(failed) or all(now > then + 3 for now, then in zip(made, before, strict=True)), "load")


@pytest.mark.slow
def test_a_server_that_is_killed_again_and_again_under_load_costs_savings_and_no_byte(
    mortal: Server, record_property: Callable[[str, object], None]
) -> None:
    stop, found, made = threading.Event(), list[tuple[int, int, float]](), [0] * 4
    failed: list[BaseException] = []

    def one(number: int) -> None:
        try:
            found.append(work(mortal, number, made, stop))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    with contextlib.ExitStack() as ends:
        ends.callback(stop.set)
        rng = random.Random(0)
        for _ in range(KILLS):
            wait_for_calls(made, failed)
            time.sleep(rng.uniform(0.5, 1.5))
            mortal.kill()
            time.sleep(rng.uniform(0, 0.5))
            mortal.start()
    for thread in threads:
        thread.join(300)
    assert not failed, failed
    assert len(found) == 4
    calls, longest = sum(calls for calls, *_ in found), max(longest for *_, longest in found)
    record_property("omissions", sum(omitted for _, omitted, _ in found))
    record_property("kills", KILLS)
    record_property("processes", len(found))
    record_property("calls", calls)
    print(f"{KILLS} kills, {calls} calls of 4 processes, each output whole, the longest call {longest:.1f} s")
