"""A directory of shims and a sandbox of files for each module: as scripts, and as a client of a server that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.shims.sandbox import PATIENT, Sandbox, make_client, make_sandbox, served

# A read by a script starts Python twice. The quick suite has in both ways the rules, how the real tool is found, and
# these shapes of commands; all else it has by the client, whose shells source the same files.
_IN_BOTH_WAYS = ("test_rules.py", "test_finding.py")
_SHAPES_IN_BOTH_WAYS = ("range", "two files", "and", "pipeline", "substitution", "redirect")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leaves the other tests of scripts to the slow suite."""
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    is_in_both_ways = item.path.name in _IN_BOTH_WAYS or given.get("shape") in _SHAPES_IN_BOTH_WAYS
    if given.get("sandbox") == "scripts" and not is_in_both_ways:
        item.add_marker("slow")


@pytest.fixture(scope="module", params=[pytest.param("scripts", marks=pytest.mark.slow), "client"])
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    if request.param == "scripts":
        yield make_sandbox(tmp_path_factory.mktemp("sandbox"))
        return
    made = _with_client(tmp_path_factory)
    with served(made):
        yield made


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return _with_client(tmp_path_factory, has_client=False)


def _with_client(factory: pytest.TempPathFactory, *, has_client: bool = True) -> Sandbox:
    directory = factory.mktemp("client")
    return make_sandbox(directory, make_client(directory / "client", PATIENT), has_client=has_client)
