"""LangChain passes the suite."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from readcache import Budget
from readcache.testing.conformance import Conformance
from tests.real_hosts.langchain.agents import LangChainHost, ShellHost, run_steps
from tests.real_hosts.measured_script import measure

# LangChain's shell leaves its pipes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


class TestLangChain(Conformance):
    host = LangChainHost("max", restore=Budget())


@pytest.mark.skipif(version("langgraph") < "1.2", reason="langgraph 1.1 cannot keep the shell in a checkpoint")
class TestLangChainsOwnShell(Conformance):
    host = ShellHost("max")

    @pytest.fixture(autouse=True)
    def skip_files_without_a_final_newline(self, request: pytest.FixtureRequest) -> None:
        """Skip files that this shell cannot print, with readcache or without it."""
        if "no-newline-at-its-end" in request.node.name:
            pytest.skip("the shell waits for its own marker at the beginning of a line, until its timeout")


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    measure("langchain", "langchain", lambda root, on: run_steps(LangChainHost(), root, on=on), tmp_path)
