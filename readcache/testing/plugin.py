"""The pytest plugin: a session for each test, on the real file system or on pyfakefs' one.

Active wherever readcache is installed (entry point `pytest11`). pytest imports this module at every start, so that the
session is imported only when a test asks for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from readcache.testing import FakeClock

if TYPE_CHECKING:
    from readcache import Policy, Session


def pytest_itemcollected(item: pytest.Item) -> None:
    """Imports what a session needs, when there is a test that has one."""
    names = getattr(item, "fixturenames", ())
    if "readcache_session" in names:
        from readcache import Session

        # pyfakefs forgets every module that is first imported while it is active: of two tests, each would have a
        # `Reason` of its own. So a call imports them before any test begins. The parser takes 85 ms.
        Session("/").observe("(cat f)" if "fs" in names else "cat f | head", "")


@pytest.fixture
def readcache_clock() -> FakeClock:
    """The clock of `readcache_session`."""
    return FakeClock()


@pytest.fixture
def readcache_policy() -> Policy:
    """The policy of `readcache_session`; override it in a test module or a conftest.py."""
    from readcache import Policy

    return Policy()


@pytest.fixture
def readcache_session(
    request: pytest.FixtureRequest, readcache_clock: FakeClock, readcache_policy: Policy
) -> Iterator[Session]:
    """A session in memory whose root is the working directory, of pyfakefs if the test has `fs`, in any order of the
    two fixtures. Its id, and so the tag in its markers, is the same in every test."""
    if "fs" in request.fixturenames:
        request.getfixturevalue("fs")
    from readcache import Session

    with Session(session_id="test", policy=readcache_policy, clock=readcache_clock) as session:
        yield session
