"""The pytest plugin: a session for each test, on the real file system or on pyfakefs.

The plugin is active if readcache is installed (entry point `pytest11`). pytest imports this module whenever it starts,
so the session is imported only if a test requests one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from readcache.testing import FakeClock

if TYPE_CHECKING:
    from readcache import Policy, Session


def pytest_itemcollected(item: pytest.Item) -> None:
    """Import the modules of a session if a test uses one."""
    names = getattr(item, "fixturenames", ())
    if "readcache_session" in names:
        from readcache import Session

        # pyfakefs forgets every module that is first imported while it is active. Two tests would then have different
        # `Reason` classes. So a call imports the modules before any test starts. The parser takes 85 ms, so only
        # tests with `fs` import it.
        Session("/").observe("(cat f)" if "fs" in names else "cat f | head", "")


@pytest.fixture
def readcache_clock() -> FakeClock:
    """Return the clock of `readcache_session`."""
    return FakeClock()


@pytest.fixture
def readcache_policy() -> Policy:
    """Return the policy of `readcache_session`. Override it in a test module or a conftest.py."""
    from readcache import Policy

    return Policy()


@pytest.fixture
def readcache_session(
    request: pytest.FixtureRequest, readcache_clock: FakeClock, readcache_policy: Policy
) -> Iterator[Session]:
    """Yield a session in memory, with the working directory as its root. If the test has `fs`, it is pyfakefs'
    directory, in any order of the two fixtures. The session's ID, and so the tag in its markers, is the same in every
    test."""
    if "fs" in request.fixturenames:
        request.getfixturevalue("fs")
    from readcache import Session

    with Session(session_id="test", policy=readcache_policy, clock=readcache_clock) as session:
        yield session
