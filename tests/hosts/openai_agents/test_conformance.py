"""The conformance suite on the real SDK, and what is saved."""

from __future__ import annotations

import importlib.metadata
import time
from pathlib import Path

from readcache.testing.conformance import Conformance, make_project
from tests.hosts.measured import Run, record
from tests.hosts.measured_script import SHORT_STEPS
from tests.hosts.openai_agents.agents_host import AgentsHost


class TestOpenaiAgents(Conformance):
    host = AgentsHost()


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    runs, files = dict[bool, Run](), set[bytes]()
    for on in (False, True):
        make_project(tmp_path / str(on))
        began = time.monotonic()
        seen = AgentsHost().converse(tmp_path / str(on), SHORT_STEPS, on=on)
        took = round(time.monotonic() - began, 2)
        runs[on] = Run(chars=sum(len(text) for one in seen for text in one.texts), seconds=took, calls=len(SHORT_STEPS))
        files.add((tmp_path / str(on) / "shop.py").read_bytes())
    record("openai-agents", {"openai-agents": importlib.metadata.version("openai-agents")}, runs[False], runs[True])
    assert runs[True].chars < 0.8 * runs[False].chars
    assert len(files) == 1
