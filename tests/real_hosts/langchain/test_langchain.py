"""LangChain passes the suite."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from langchain.agents import create_agent

from readcache import Budget
from readcache.testing.conformance import Conformance
from readcache.testing.requests import markers
from tests.real_hosts.examples_page import switched_on
from tests.real_hosts.langchain.agents import LangChainHost, Script, ShellHost, run_steps, says
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


def test_the_lines_of_the_page_switch_it_on(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("".join(f"def item_{n}(count: int) -> float: ...\n" for n in range(60)))
    model = Script(answers=[says(("bash", {"command": "cat shop.py"})) for _ in range(2)])
    middleware = switched_on("readcache.hosts.langchain", tmp_path).middleware
    agent = create_agent(model, LangChainHost().tools(tmp_path), middleware=middleware)
    agent.invoke({"messages": [("user", "read it")]})
    assert not markers(model.requests[-1][2].text)
    assert markers(model.requests[-1][4].text)
