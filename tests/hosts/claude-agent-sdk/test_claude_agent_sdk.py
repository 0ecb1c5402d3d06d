"""The conformance suite with the real claude-agent-sdk."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sdk_talk import AgentSdk

from readcache.testing.conformance import Conformance


class TestClaudeAgentSdk(Conformance):
    """Hooks in this process."""

    host = AgentSdk()
