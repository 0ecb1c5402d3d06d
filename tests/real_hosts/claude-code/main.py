"""Claude Code holds the main conversation, by its plugin and by hooks. See tests/real_hosts/main_conversation.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from readcache.testing.hosts import Step
from tests.real_hosts.claude_cli import ClaudeCode, end_server, environment, program
from tests.real_hosts.main_conversation import SECONDS, HostReport, host_report
from tests.real_hosts.messages_api import ScriptedModel, messages_api

WAYS = ("--user", "--project")
CAN = ClaudeCode.can


def run_steps(root: Path, steps: Sequence[Step], way: str) -> HostReport:
    """Hold it. `way`: of `init`."""

    def readcache(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "readcache", *words]
        ran = subprocess.run(command, cwd=root, env=environment(root), check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout

    version = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout.split()[0]
    host, model = ClaudeCode(way=way or "--user"), ScriptedModel(str(root))
    _, said = readcache("init", "claude-code", way or "--user")
    with messages_api(model) as address:
        talk = host.talk(root, address, on=True)
        try:
            model.delay = SECONDS
            seen = [host.step(talk, model, step) for step in steps]
            talk.close()
            return host_report(version, way, said, seen, readcache, "claude-code")
        finally:
            talk.close()
            end_server(root)
