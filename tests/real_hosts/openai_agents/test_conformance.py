"""The conformance suite on the real SDK, and what is saved."""

from __future__ import annotations

import importlib.metadata
import time
from pathlib import Path

from readcache.testing.conformance import Conformance, make_project
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.measured_script import SHORT_STEPS, result_chars
from tests.real_hosts.openai_agents.agents_host import AgentsHost


class TestOpenaiAgents(Conformance):
    host = AgentsHost()


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> Run:
        make_project(root)
        began = time.monotonic()
        seen = AgentsHost().converse(root, SHORT_STEPS, on=on)
        return Run(result_chars(seen), time.monotonic() - began, len(SHORT_STEPS))

    compare("openai-agents", {"openai-agents": importlib.metadata.version("openai-agents")}, run_steps, tmp_path)
