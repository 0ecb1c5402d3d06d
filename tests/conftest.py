"""What all tests need of the process that they run in."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from readcache import Session
from shims.build import CannotBuild, build_for_checkout
from tests.helpers import forks
from tests.replay import plain_form

plain_form.register()


def _is_quick(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not slow")


def pytest_configure(config: pytest.Config) -> None:
    """Tries few examples of each law in the quick suite, and many in any other run."""
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]
    # How long an example takes says more of the machine than of the code.
    laws = settings(deadline=None, suppress_health_check=checks, max_examples=20 if _is_quick(config) else 300)
    settings.register_profile("tests", laws)
    settings.load_profile("tests")
    os.environ.pop("COLUMNS", None)  # xdist sets it; our tables heed it


def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are cores, unless the environment says how many: some tests wait, and need none meanwhile."""
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else (os.cpu_count() or 1) + 1


def pytest_itemcollected(item: pytest.Item) -> None:
    """Runs with the slow tests, too: the laws, which try many examples there, and what is forked in the quick suite,
    which is started there."""
    if _is_quick(item.config):
        return
    if is_hypothesis_test(getattr(item, "obj", None)) or "_forked" in getattr(item, "fixturenames", ()):
        item.add_marker("slow")


# Real hosts: each folder has packages of its own, which `python tests/real_hosts/run.py NAME` installs.
collect_ignore = [
    str(folder)
    for folder in (Path(__file__).parent / "real_hosts").iterdir()
    if folder.is_dir() and folder.name != os.environ.get("READCACHE_TEST_HOST")
]


def _hears(_number: int, _frame: object) -> None:
    """Does nothing, as what was ignored; but what is only ignored, programs that are started ignore too."""


# A suite in the background of a script (`&`, nohup) is started to ignore these, and a bash below it could not trap any.
for _each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_each) is signal.SIG_IGN:
        signal.signal(_each, _hears)


# Tests start thousands of programs in Python: where it keeps no bytecode, each compiles the package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

with contextlib.suppress(CannotBuild):
    build_for_checkout()  # where it cannot be built, Python does what the client does, and tests of it are skipped


@pytest.fixture
def session() -> Session:
    """A session that is told what a tool printed: no file of `/w` is there."""
    return Session("/w")


@pytest.fixture(scope="session")
def _forked(pytestconfig: pytest.Config) -> Iterator[None]:
    """In the quick suite, `forks.start` forks instead of starting."""
    with forks.forking() if _is_quick(pytestconfig) and forks.CAN_FORK else contextlib.nullcontext():
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_server_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ends the servers that were started on demand for stores of these tests, whose directories stay."""
    yield
    store = os.fsencode(tmp_path_factory.getbasetemp())
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"--on-demand" in words and any(word.startswith(store) for word in words):
                os.kill(int(process.name), signal.SIGTERM)
