"""A directory of shims and a sandbox of files for each module: as scripts, and as a client of a server that runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.shims.sandbox import Sandbox, make_sandbox, served

# A machine on which all tests run at once is no measure of how long a client waits.
PATIENT = "-DPATIENCE_MS=20000"


@pytest.fixture(scope="module", params=["scripts", "client"])
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    if request.param == "scripts":
        yield make_sandbox(tmp_path_factory.mktemp("sandbox"))
        return
    made = _compiled(tmp_path_factory, has_client=True)
    with served(made):
        yield made


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return _compiled(tmp_path_factory, has_client=False)


def _compiled(factory: pytest.TempPathFactory, *, has_client: bool) -> Sandbox:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CPPFLAGS", PATIENT)
        return make_sandbox(factory.mktemp("compiled"), "--compile", has_client=has_client)
