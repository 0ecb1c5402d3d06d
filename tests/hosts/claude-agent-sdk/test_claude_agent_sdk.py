"""The conformance suite with the real claude-agent-sdk."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sdk_talk import AgentSdk  # noqa: E402  found in this folder, whose name is none for a module

from readcache.testing.conformance import Conformance  # noqa: E402


class TestClaudeAgentSdk(Conformance):
    """Hooks in this process."""

    host = AgentSdk()
