"""Every shape of command through bash with shims and without: stdout is a pipe, alone or with stderr."""

from __future__ import annotations

import pytest

from tests.shims.comparing import compare_bash
from tests.shims.conftest import Sandbox
from tests.shims.shapes import BASH_SHAPES, SHAPES


@pytest.mark.parametrize("stdout", ["pipe", "merged"])
@pytest.mark.parametrize("shape", [*SHAPES, *BASH_SHAPES])
def test_only_the_agents_own_view_differs(sandbox: Sandbox, shape: str, stdout: str) -> None:
    compare_bash(sandbox, shape, stdout)
