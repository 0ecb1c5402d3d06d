"""Hints about the package name the tool that installed it."""

from __future__ import annotations

import sys

import pytest

from readcache.core.model.plugins import how_to_add, how_to_uninstall

UV, PIPX, VENV = "/h/.local/share/uv/tools/readcache", "/h/.local/share/pipx/venvs/readcache", "/w/my venv"


@pytest.mark.parametrize(
    ("prefix", "add", "uninstall"),
    [
        (UV, "uv tool install '.[redis]' (in a checkout)", "uv tool uninstall readcache"),
        (PIPX, "pipx inject readcache 'readcache[redis]'", "pipx uninstall readcache"),
        (VENV, "'/w/my venv/bin/pip' install 'readcache[redis]'", "'/w/my venv/bin/pip' uninstall readcache"),
        (sys.base_prefix, "pip install 'readcache[redis]'", "pip uninstall readcache"),
    ],
)
def test_a_hint_names_the_tool_that_installed_the_package(prefix: str, add: str, uninstall: str) -> None:
    assert (how_to_add("redis", prefix), how_to_uninstall(prefix)) == (add, uninstall)


def test_by_default_it_is_the_tool_of_this_environment() -> None:
    assert how_to_add("redis") == how_to_add("redis", sys.prefix)
    assert how_to_uninstall() == how_to_uninstall(sys.prefix)
