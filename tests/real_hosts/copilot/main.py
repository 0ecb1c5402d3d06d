"""The Copilot CLI holds the main conversation. See tests/real_hosts/main_conversation.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from readcache.testing.hosts import Seen, Step
from tests.real_hosts.copilot.scripted import CopilotCli, cli_version
from tests.real_hosts.main_conversation import SECONDS, HostReport, command_line, host_report

CAN = CopilotCli.can


def run_steps(root: Path, steps: Sequence[Step], way: str) -> HostReport:
    """Hold it, with the user's hooks."""
    found: list[HostReport] = []

    def look(seen: list[Seen], said: str, env: dict[str, str]) -> None:
        found.append(host_report(cli_version(), way, said, seen, command_line(root, env), "copilot"))

    CopilotCli(delay=SECONDS, look=look).run(root, steps, on=True)
    return found[0]
