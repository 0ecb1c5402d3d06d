"""LangChain and deepagents pass the suite, with their defaults and with everything switched on."""

from __future__ import annotations

from readcache import Budget
from readcache.testing.conformance import Conformance
from tests.hosts.langchain.agents import DeepHost, LangChainHost, ShellHost


class TestLangChain(Conformance):
    host = LangChainHost("max", restore=Budget())


class TestLangChainsOwnShell(Conformance):
    host = ShellHost("max")


class TestDeepagents(Conformance):
    host = DeepHost()


class TestDeepagentsWithRealPathsAndEverythingSwitchedOn(Conformance):
    host = DeepHost("max", virtual=False)
