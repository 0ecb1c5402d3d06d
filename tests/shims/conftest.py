"""A directory of shims and a sandbox of files for each module."""

from __future__ import annotations

import shutil

import pytest

from tests.shims.sandbox import Sandbox, make_sandbox


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    return make_sandbox(tmp_path_factory.mktemp("compiled"), "--compile")
