"""Runs named tests against a mutant: in a fork of a pytest that has collected them.

    with Killers() as killers:
        run = killers.run(mutant.name, ["tests/core/shell/test_writers.py::test_…"])

Starting pytest costs more than the tests that a mutant needs. A fork has started, and what is patched in it ends with
it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

import pytest

import readcache
from tests.helpers.files import WATCHDOG
from tests.laws.mutants.guarded import MUTANTS
from tests.laws.mutants.mutants import Mutant, applied

ROOT = Path(__file__).resolve().parents[3]
_OPTIONS = (
    *("-s", "-n", "0", "-q", "--tb", "short", "-p", "no:cacheprovider", "-m", "not slow"),  # -s: forks print to a file
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # what was imported before cannot be rewritten
)


class Run(NamedTuple):
    """The outcomes of each test, "passed", "failed" or "skipped" for each of its parameters, and what pytest printed.
    A test that was not collected has no outcomes."""

    outcomes: dict[str, list[str]]
    printed: str


class Killers:
    """The process that is forked for each mutant."""

    def __enter__(self) -> Killers:
        words = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(words, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, mutant: str, tests: Sequence[str]) -> Run:
        """Run these tests, killers of any mutant. `mutant`: a name in `MUTANTS`; "" for the package as it is."""
        sent, told = self._process.stdin, self._process.stdout
        assert sent is not None
        assert told is not None
        print(json.dumps([mutant, tests]), file=sent, flush=True)
        found, printed = json.loads(told.readline())
        return Run({test: [outcome for name, outcome in found if name == test] for test in tests}, printed)


class _Forking:
    """A plugin of pytest that runs no test by itself, but some in a fork for each request."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests, self._answers = requests, answers
        self._found: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of a test. One whose fixtures fail has none."""
        if report.when == "call" or report.skipped:
            self._found.append((_without_parameters(report.nodeid), report.outcome))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer each request with what its fork left."""
        mutants = {each.mutant.name: each.mutant for each in MUTANTS}
        gc.collect()
        gc.freeze()
        for line in self._requests:
            name, tests = json.loads(line)
            items = [item for item in session.items if _without_parameters(item.nodeid) in tests]
            with tempfile.TemporaryFile("w+") as found, tempfile.TemporaryFile("w+", errors="replace") as printed:
                pid = os.fork()
                if not pid:
                    self._run(mutants[name] if name else None, items, found, printed)
                os.waitpid(pid, 0)
                found.seek(0)
                printed.seek(0)
                print(json.dumps([json.loads(found.read() or "[]"), printed.read()]), file=self._answers, flush=True)
        return True

    def _run(self, mutant: Mutant | None, items: Sequence[pytest.Item], found: IO[str], printed: IO[str]) -> None:
        """Write the outcomes of the tests, and end this process."""
        try:
            signal.alarm(WATCHDOG)  # ends a fork whose mutant never ends
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            with applied(mutant) if mutant is not None else contextlib.nullcontext():
                for item, following in zip(items, [*items[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            json.dump(self._found, found)
            found.flush()
        finally:
            sys.stdout.flush()
            os._exit(0)


def _without_parameters(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _serve() -> None:
    """Collect the tests, then fork for each request on stdin. Answers go to stdout, and nothing else."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    for module in pkgutil.walk_packages(readcache.__path__, "readcache."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of a host that is not installed
                importlib.import_module(module.name)
    killers = sorted({killer for each in MUTANTS for killer in each.killers})
    pytest.main([*_OPTIONS, *killers], plugins=[_Forking(requests, answers)])


if __name__ == "__main__":
    _serve()
