"""opencode holds the main conversation. See tests/real_hosts/main_conversation.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from readcache.testing.hosts import Step
from tests.real_hosts.main_conversation import SECONDS, HostReport, command_line, host_report, version_of
from tests.real_hosts.opencode.host import Conversation, OpencodeHost
from tests.real_hosts.opencode.scripted import Model, opencode

CAN = OpencodeHost.can


def run_steps(root: Path, steps: Sequence[Step], way: str) -> HostReport:
    """Hold it."""
    home, model = root.parent / "home", Model()
    home.mkdir()
    readcache = command_line(root, os.environ | {"HOME": str(home)})
    _, said = readcache("init", "opencode", "--user")
    with opencode(home, model, root) as host:
        model.delay = SECONDS
        seen = Conversation(host).run_steps(steps)
    return host_report(version_of("opencode"), way, said, seen, readcache, "opencode")
