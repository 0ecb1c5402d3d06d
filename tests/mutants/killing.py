"""Runs named tests against a mutant: in a fork of a process that has imported what they need.

    with Killers() as killers:
        run = killers.run(mutant.name, ["tests/shell/test_writers.py::test_…"])

Starting Python with pytest and all its imports costs more than the tests that a mutant needs. A fork has them, and what
is patched in it ends with it.
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
from tests.mutants.guarded import MUTANTS
from tests.mutants.mutants import Mutant, applied

ROOT = Path(__file__).resolve().parents[2]
_OPTIONS = ("-n", "0", "-q", "--tb", "short", "-p", "no:cacheprovider", "-m", "not slow")
_IMPORTED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # what is imported already, pytest cannot rewrite


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
        """Run these tests, named without parameters. `mutant`: a name in `MUTANTS`; "" for the package as it is."""
        sent, told = self._process.stdin, self._process.stdout
        assert sent is not None
        assert told is not None
        print(json.dumps([mutant, sorted(set(tests))]), file=sent, flush=True)
        found, printed = json.loads(told.readline())
        of = {test: [outcome for name, outcome in found if name.partition("[")[0] == test] for test in tests}
        return Run(of, printed)


class _Outcomes:
    """A plugin of pytest that keeps the outcome of each test. One whose fixtures fail has none."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.skipped:
            self.found.append((report.nodeid, report.outcome))


def _serve(requests: IO[str], answers: IO[str]) -> None:
    """Fork for each request, and answer it with what the fork left."""
    for module in pkgutil.walk_packages(readcache.__path__, "readcache."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of a host that is not installed
                importlib.import_module(module.name)
    importlib.import_module("tests.conftest")
    mutants = {each.mutant.name: each.mutant for each in MUTANTS}
    gc.collect()
    gc.freeze()
    for line in requests:
        name, tests = json.loads(line)
        with tempfile.TemporaryFile("w+") as outcomes, tempfile.TemporaryFile("w+", errors="replace") as printed:
            pid = os.fork()
            if not pid:
                _run(mutants[name] if name else None, tests, outcomes, printed)
            os.waitpid(pid, 0)
            outcomes.seek(0)
            printed.seek(0)
            answer = json.loads(outcomes.read() or "[]"), printed.read()
            print(json.dumps(answer), file=answers, flush=True)


def _run(mutant: Mutant | None, tests: Sequence[str], answer: IO[str], printed: IO[str]) -> None:
    """Write the outcomes of the tests, and end this process."""
    status = 1
    try:
        signal.alarm(WATCHDOG)  # ends a fork whose mutant never ends
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        outcomes = _Outcomes()
        with applied(mutant) if mutant is not None else contextlib.nullcontext():
            pytest.main([*_OPTIONS, *_IMPORTED, *tests], plugins=[outcomes])
        json.dump(outcomes.found, answer)
        answer.flush()
        status = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve(sys.stdin, sys.stdout)
