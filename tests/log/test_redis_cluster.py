"""A Redis Cluster: what is in one place, what its end costs, and what is said to who names one by mistake."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from readcache import Session
from readcache.core.model.errors import StoreError
from readcache.core.model.events import Compacted
from readcache.log.store import open_store, redis_server
from readcache.log.store.redis import RedisStore
from tests.helpers.redis_server import PROGRAM, Server, free_port
from tests.log.test_redis_store import client, omits, wait_until

pytestmark = pytest.mark.slow  # starts a cluster of six servers

SLOTS = 16_384


def cluster_of(count: int) -> list[Server]:
    """Nodes that have found each other, each with its part of the slots."""
    nodes = [Server("--cluster-enabled", "yes", "--appendonly", "no", port=True) for _ in range(count)]
    for number, node in enumerate(nodes):
        with client(node) as asked:
            first, end = SLOTS * number // count, SLOTS * (number + 1) // count
            asked.execute_command("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
            asked.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            asked.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    for node in nodes:
        with client(node) as asked:
            wait_until(lambda asked=asked: b"cluster_state:ok" in asked.execute_command("CLUSTER", "INFO"))
    return nodes


@pytest.fixture
def nodes() -> Iterator[list[Server]]:
    found = cluster_of(3)
    yield found
    for node in found:
        node.close()


@pytest.fixture
def node() -> Iterator[Server]:
    (found,) = cluster_of(1)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "DEADLINE", 60.0)  # the machine may be busy


def url_of(node: Server) -> str:
    return f"redis://127.0.0.1:{node.port}/0?cluster=yes"


def test_sessions_are_spread_over_the_nodes_and_each_is_in_one_place(nodes: list[Server]) -> None:
    names = {"} {", *(f"s{number}" for number in range(12))}
    for name in names:
        with Session("/w", session_id=name, store=url_of(nodes[0])) as session:
            assert [omits(session), omits(session)] == [False, True]
            session.settle(session.observe("cat g", "g\n" * 40).call_id, "")
            assert not session.stats().get("store_failed")
    store = RedisStore(url_of(nodes[2]))
    assert {context[0] for context in store.sessions()} == names
    store.take_out("s1", time.time())
    assert [r.event for r in store.records("s1")] == [Compacted(frozenset())]
    for node in nodes:
        with client(node) as asked:
            assert asked.dbsize()


def test_a_cluster_that_is_down_costs_savings_and_what_it_is_told_meanwhile_is_kept(node: Server) -> None:
    with Session("/w", session_id="s", store=url_of(node)) as session:
        assert [omits(session), omits(session)] == [False, True]
        node.kill()
        assert not omits(session)
        session.compacted()
        with Session("/w", session_id="s", store=url_of(node)) as other:
            assert [omits(other), omits(other)] == [False, False]
            other.compacted()
        node.start()
        with client(node) as asked:
            wait_until(lambda: b"cluster_state:ok" in asked.execute_command("CLUSTER", "INFO"))
        assert not omits(session)
        wait_until(lambda: omits(session))
        assert "internal_error" not in session.stats()


def test_who_names_a_node_as_a_server_or_a_server_as_a_cluster_is_told_what_to_change(nodes: list[Server]) -> None:
    alone = Server(port=True)
    try:
        store = open_store(url_of(nodes[0]).removesuffix("?cluster=yes"))
        with pytest.raises(StoreError, match="add cluster=yes to its URL"):
            any(store.records(f"s{number}") for number in range(12))  # spread over the nodes
        with pytest.raises(StoreError, match="remove cluster=yes from its URL"):
            list(open_store(url_of(alone)).sessions())
    finally:
        alone.close()


def test_who_names_a_sentinel_is_told_to_name_the_primary() -> None:
    primary, port = Server(port=True), free_port()
    settings = primary.directory / "sentinel.conf"
    settings.write_text(f"sentinel monitor it 127.0.0.1 {primary.port} 1\n")
    words = [str(PROGRAM), str(settings), "--sentinel", "--port", str(port), "--bind", "127.0.0.1"]
    words += ["--dir", str(primary.directory)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as sentinel:
        try:
            wait_until(lambda: is_told_of_the_primary(port))
        finally:
            sentinel.kill()
            primary.close()


def is_told_of_the_primary(port: int) -> bool:
    try:
        list(open_store(f"redis://127.0.0.1:{port}").sessions())
    except StoreError as error:
        return "name the primary" in str(error)
    return False
