"""Which versions of hosts may be installed: from the oldest one on that the tests of hosts are run with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
EXTRAS = ["claude-agent-sdk", "google-adk", "langchain", "mcp", "mini-swe-agent", "openai-agents", "openhands"]
EXTRAS += ["pydantic-ai", "strands"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_oldest_version_that_is_allowed_is_one_that_is_run(extra: str) -> None:
    named = extra if extra != "openai-agents" else "openai_agents"
    needs = json.loads((TOP / "tests/real_hosts" / named / "needs.json").read_text(encoding="utf-8"))
    run = dict(package.split("==") for package in needs.get("oldest", needs["pip"]) if "==" in package)
    (line,) = re.findall(rf"^{extra} = \[(.*?)\]", (TOP / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    allowed = dict(re.findall(r'"([\w-]+)>=([\d.]+)', line))
    assert allowed
    for package, lowest in allowed.items():
        assert f"{run[package]}.".startswith(f"{lowest}."), package
