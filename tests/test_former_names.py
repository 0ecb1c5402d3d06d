"""Modules that moved into `readcache.core` can be imported by their former names, for one version."""

from __future__ import annotations

import importlib
import sys

import pytest

import readcache


@pytest.mark.parametrize(
    "name", ["model.view", "messages.editing", "shell", "judging.judge", "sync.sync", "restore.plan"]
)
def test_a_module_that_moved_is_found_by_its_former_name_and_exists_once(name: str) -> None:
    moved = importlib.import_module(f"readcache.core.{name}")
    assert importlib.import_module(f"readcache.{name}") is moved
    assert sys.modules[f"readcache.{name}"] is moved


def test_a_policy_by_the_former_name_is_the_one_that_a_session_takes() -> None:
    former = importlib.import_module("readcache.model.policy")
    assert former.Policy is readcache.Policy


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"readcache\.model\.nothing"):
        importlib.import_module("readcache.model.nothing")
