"""The page of examples quotes the very files that are tested against the real packages."""

from __future__ import annotations

from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["smolagents/smolagents_example.py", "swe-agent/swe_agent_example.py"])
def test_the_page_quotes_what_was_tried(name: str) -> None:
    code = (TOP / "tests/real_hosts" / f"examples-{name}").read_text(encoding="utf-8").partition('"""\n\n')[2]
    assert len(code) > 300
    assert f"```python\n{code}```" in (TOP / "docs/hosts/examples.md").read_text(encoding="utf-8")
