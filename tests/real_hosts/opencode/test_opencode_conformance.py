"""opencode with its plugin owes what every adapter owes: the suite, with the real program."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from readcache.testing.conformance import Conformance
from tests.real_hosts.opencode.host import OpencodeHost

HOST = OpencodeHost()


@pytest.fixture(scope="module", autouse=True)
def end() -> Iterator[None]:
    """What was started for the tests ends with them."""
    yield
    HOST.close()


class TestOpencode(Conformance):
    host = HOST
