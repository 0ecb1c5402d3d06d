"""Every shape of command through bash with shims and without: stdout is a file; and the two other ways."""

from __future__ import annotations

import pytest

from tests.shims.comparing import assert_same, compare_bash
from tests.shims.conftest import Sandbox
from tests.shims.shapes import BASH_SHAPES, SHAPES


@pytest.mark.parametrize(
    "stdout",
    [
        "file",
    ],
)
@pytest.mark.parametrize("shape", [*SHAPES, *BASH_SHAPES])
def test_only_the_agents_own_view_differs(sandbox: Sandbox, shape: str, stdout: str) -> None:
    compare_bash(sandbox, shape, stdout)


@pytest.mark.parametrize("kind", ["sandbox", "compiled"])
@pytest.mark.parametrize("shape", SHAPES)
def test_of_a_directory_on_path_too(request: pytest.FixtureRequest, shape: str, kind: str) -> None:
    """`sh -c`, where children meet the shims as well."""
    place: Sandbox = request.getfixturevalue(kind)
    command, record = SHAPES[shape], f". {place.shims}/agent-shell.sh; "
    with_shims = place.run(["sh", "-c", record + command], place.readcache(), "merged")
    assert_same(with_shims, place.run(["sh", "-c", command], place.env(), "merged"))


@pytest.mark.parametrize("shape", [*SHAPES, *BASH_SHAPES])
def test_of_the_whole_command_way_too(sandbox: Sandbox, shape: str) -> None:
    words = ["/bin/bash", "-c", SHAPES.get(shape) or BASH_SHAPES[shape]]
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))
    assert_same(sandbox.run(words, env, "merged"), sandbox.run(words, sandbox.env(), "merged"))
