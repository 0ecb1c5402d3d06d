"""Run the programs in `examples` as a user does. Each byte that their models receive is checked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.tables import TOP

EXAMPLES = sorted((TOP / "examples").glob("*.py"))
LINES = [f"item_{n} = Item('number {n}', price={n}.99)\n" for n in range(1, 41)]
NUMBERED = [f"{n:6}\t{line}" for n, line in enumerate(LINES, 1)]
MARKER = r"\[UNCHANGED [0-9a-f]{6}\.2: prices\.py lines 8-29, above in %s; repeat this call to see\]"


def printed_by(name: str, directory: Path) -> str:
    """Return the output of an example. Its home and its directory for temporary files are `directory`."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("READCACHE")}
    environment |= {key: str(directory) for key in ("HOME", "XDG_STATE_HOME", "TMPDIR")}
    command = [sys.executable, f"examples/{name}"]
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def results_in(conversation: str) -> list[str]:
    """Return the results of tools in a printed conversation."""
    parts = re.split(r"^== (\w+)\n", conversation, flags=re.MULTILINE)
    return [text.removesuffix("\n") for role, text in zip(parts[1::2], parts[2::2], strict=True) if role == "tool"]


def test_the_bash_agent_gets_a_marker_and_all_other_bytes(tmp_path: Path) -> None:
    whole, marker, again, changed = results_in(printed_by("bash_agent.py", tmp_path))
    assert whole == "".join(LINES)
    assert re.fullmatch(MARKER % '"cat prices.py"', marker.strip())
    assert again == "".join(LINES[7:29])
    assert changed == "".join(LINES).replace(".99", ".49")


def test_the_agent_with_a_read_tool_gets_a_marker_and_all_other_bytes(tmp_path: Path) -> None:
    whole, marker, edited, changed = results_in(printed_by("read_tool_agent.py", tmp_path))
    assert whole == "".join(NUMBERED)
    assert re.fullmatch(MARKER % "the read of prices.py", marker.strip())
    assert edited == "edited prices.py"
    assert changed == "".join(NUMBERED[7:29]).replace("price=9.99", "price=8.99")


def test_the_agent_with_a_list_has_true_markers_after_clearing_and_compacting(tmp_path: Path) -> None:
    printed = printed_by("message_list_agent.py", tmp_path)
    titles_and_lists = re.split(r"^==== (.*)\n", printed, flags=re.MULTILINE)[1:]
    titles, lists = titles_and_lists[::2], titles_and_lists[1::2]
    assert titles == ["before clearing", "after clearing, and `mend`", "compacted: summarised", "the end"]
    before, cleared, compacted = map(results_in, lists[:3])
    assert before[0] == "".join(LINES)
    assert re.fullmatch(MARKER % '"cat prices.py"', before[1].strip())
    assert "prices.py lines 30-40, above" in before[2]
    # The source is gone: one marker says so, and the other one is its lines again.
    assert cleared[0] == "[old tool result cleared]"
    assert "prices.py lines 8-29 were omitted here and are no longer above" in cleared[1]
    assert cleared[2] == "".join(LINES[29:])
    assert "TASK: check the prices" in lists[2]
    assert "## Files restored after compaction" in lists[2]
    assert len(compacted) == 1
    assert "".join(LINES) in compacted[0]
    assert "more.py lines 1-40, above" not in lists[2]
    assert lists[3].startswith(lists[2].rstrip("\n"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_leaves_nothing_behind(path: Path, tmp_path: Path) -> None:
    assert f"`python examples/{path.name}`" in path.read_text(encoding="utf-8")
    printed_by(path.name, tmp_path)
    assert list(tmp_path.iterdir()) == []
