"""LangChain passes the suite."""

from __future__ import annotations

from pathlib import Path

from readcache import Budget
from readcache.testing.conformance import Conformance
from tests.hosts.langchain.agents import LangChainHost, ShellHost, hold
from tests.hosts.measured_script import measure


class TestLangChain(Conformance):
    host = LangChainHost("max", restore=Budget())


class TestLangChainsOwnShell(Conformance):
    host = ShellHost("max")


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    measure("langchain", "langchain", lambda root, on: hold(LangChainHost(), root, on=on), tmp_path)
