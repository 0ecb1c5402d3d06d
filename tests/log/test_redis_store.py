"""The Redis store, on a real server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from readcache.log.store.redis import RedisStore
from tests.helpers.redis_server import Server
from tests.log.test_store_conformance import StoreConformance, StoreFactory

PREFIXES = (f"p{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server("--appendonly", "no")
    yield running
    running.close()


class TestRedisStore(StoreConformance):
    @pytest.fixture
    def store_factory(self, server: Server) -> StoreFactory:
        url = f"{server.url}&prefix={next(PREFIXES)}"
        return lambda: RedisStore(url)
