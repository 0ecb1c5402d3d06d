"""The conformance suite with the real Claude Code, whose hooks are processes."""

from __future__ import annotations

from readcache.testing.conformance import Conformance
from tests.real_hosts.claude_cli import ClaudeCode


class TestPlugin(Conformance):
    """It is loaded, and asks the server."""

    host = ClaudeCode(way="--user")


class TestHooks(Conformance):
    """Each hook is a process."""

    host = ClaudeCode()
