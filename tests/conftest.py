"""What all tests need of the process that they run in."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from readcache import Session

# Real hosts: each folder has packages of its own, which `python tests/hosts/run.py NAME` installs.
collect_ignore = [
    str(folder)
    for folder in (Path(__file__).parent / "hosts").iterdir()
    if folder.is_dir() and folder.name != os.environ.get("READCACHE_TEST_HOST")
]


def _hears(_number: int, _frame: object) -> None:
    """Does nothing, as what was ignored; but what is only ignored, programs that are started ignore too."""


# A suite in the background of a script (`&`, nohup) is started to ignore these, and a bash below it could not trap any.
for _each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_each) is signal.SIG_IGN:
        signal.signal(_each, _hears)


@pytest.fixture
def session() -> Session:
    """A session that is told what a tool printed: no file of `/w` is there."""
    return Session("/w")
