"""pi holds the main conversation. See tests/real_hosts/main_conversation.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from readcache.testing.hosts import Step
from tests.real_hosts.main_conversation import SECONDS, HostReport, command_line, host_report, version_of
from tests.real_hosts.pi.host import PiHost, pi

CAN = PiHost.can


def run_steps(root: Path, steps: Sequence[Step], way: str) -> HostReport:
    """Hold it."""
    home = root.parent / "home"
    home.mkdir()
    readcache = command_line(root, os.environ | {"HOME": str(home)})
    _, said = readcache("init", "pi", "--user")
    with pi(home, root) as running:
        running.model.delay = SECONDS
        seen = running.run_steps(*steps)
    return host_report(version_of("pi"), way, said, seen, readcache, "pi")
