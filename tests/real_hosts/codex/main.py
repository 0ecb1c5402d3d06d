"""Codex holds the main conversation. See tests/real_hosts/main_conversation.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from readcache.testing.hosts import Seen, Step
from tests.real_hosts.codex.scripted import CodexHost
from tests.real_hosts.main_conversation import SECONDS, HostReport, command_line, host_report, version_of

CAN = CodexHost.can


def run_steps(root: Path, steps: Sequence[Step], way: str) -> HostReport:
    """Hold it, with hooks that the user trusts."""
    found: list[HostReport] = []

    def look(seen: list[Seen], said: str, env: dict[str, str]) -> None:
        found.append(host_report(version_of("codex"), way, said, seen, command_line(root, env), "codex"))

    CodexHost(delay=SECONDS, look=look, trusts=True).run(root, steps, on=True)
    return found[0]
