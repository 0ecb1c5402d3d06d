"""A directory of shims and a sandbox of files for each module: as scripts, and as a client of a server that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.shims.sandbox import PATIENT, Sandbox, make_client, make_sandbox, served


@pytest.fixture(scope="module", params=["scripts", "client"])
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
    place = factory.mktemp("client")
    return make_sandbox(place, make_client(place / "client", PATIENT), has_client=has_client)
