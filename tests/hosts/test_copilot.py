"""Copilot's hook on events and session files as the real CLI (1.0.102) writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from readcache import Sessions
from readcache.hosts.copilot import copilot_hook

TEXT = "".join(f"line {number} of a file that is read twice\n" for number in range(60))
TAIL = "<shellId: 0 completed with exit code 0>"


class Copilot:
    """A session: its file, and what the hook answers."""

    def __init__(self, directory: Path) -> None:
        self.path, self.sessions, self.rows = directory / "events.jsonl", Sessions(directory), list[Any]()
        self.clock = 0

    def add(self, kind: str, agent: str = "", **data: Any) -> None:
        self.rows.append({"type": kind, "data": data, **({"agentId": agent} if agent else {})})

    def calls(self, *names: str, agent: str = "", command: str = "cat f") -> None:
        """A message of the model that runs the command under each of these IDs."""
        asked = [{"toolCallId": name, "name": "bash", "arguments": {"command": command}} for name in names]
        self.add("assistant.message", agent, messageId=f"m{len(self.rows)}", content="", toolRequests=asked)

    def ended(self, name: str, text: str, agent: str = "") -> None:
        """The call's result, as the model is sent it."""
        self.add("tool.execution_complete", agent, toolCallId=name, result={"content": text})

    def hook(
        self,
        agent: str = "",
        *,
        is_written: bool = True,
        more: str = "",
        command: str = "cat f",
        printed: str = TEXT + TAIL,
    ) -> str | None:
        """What the model is sent instead of what the command printed. `is_written`: the file has the hook's entry;
        `more`: text after it."""
        self.clock += 1
        if is_written:
            self.add("hook.start", agent, hookType="postToolUse", input={"timestamp": self.clock})
        self.path.write_text("".join(json.dumps(row) + "\n" for row in self.rows) + more)
        result = {"textResultForLlm": printed, "resultType": "success"}
        event = {
            "sessionId": agent or "s",
            "timestamp": self.clock,
            "cwd": str(self.path.parent),
            "toolName": "bash",
            "toolArgs": {"command": command},
            "toolResult": result,
            "transcriptPath": str(self.path),
            **({"agentId": agent, "parentAgentId": "s"} if agent else {}),
        }
        answer = copilot_hook(event, self.sessions)
        if answer is None:
            return None
        assert answer["modifiedResult"] | {"textResultForLlm": ""} == result | {"textResultForLlm": ""}
        return str(answer["modifiedResult"]["textResultForLlm"])

    def turn(self, name: str, agent: str = "") -> str | None:
        """A call and its result."""
        self.calls(name, agent=agent)
        answer = self.hook(agent)
        self.ended(name, answer or TEXT + TAIL, agent)
        return answer


@pytest.fixture
def copilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copilot:
    monkeypatch.setattr("readcache.hosts.copilot.PATIENCE", 0.0)
    return Copilot(tmp_path)


def is_marker(text: str | None) -> bool:
    return text is not None and "UNCHANGED" in text and text.endswith(TAIL)


def test_a_visible_result_is_omitted_and_the_exit_status_stays(copilot: Copilot) -> None:
    assert copilot.turn("c1") is None
    assert is_marker(copilot.turn("c2"))


def test_nothing_is_omitted_before_the_file_has_the_hooks_entry(copilot: Copilot) -> None:
    copilot.turn("c1")
    copilot.calls("c2")
    assert copilot.hook(is_written=False) is None


def test_a_line_that_is_half_written_is_not_read(copilot: Copilot) -> None:
    copilot.turn("c1")
    copilot.calls("c2")
    assert is_marker(copilot.hook(more='{"type":"session.compaction_start","da'))


def test_nothing_is_omitted_while_a_compaction_runs(copilot: Copilot) -> None:
    """Results of that time stay after the compaction, and their sources do not."""
    copilot.turn("c1")
    copilot.add("session.compaction_start")
    assert copilot.turn("c2") is None
    copilot.add("session.compaction_complete", success=True)
    assert copilot.turn("c3") is None
    assert is_marker(copilot.turn("c4"))


def test_a_compaction_that_failed_removed_nothing(copilot: Copilot) -> None:
    copilot.turn("c1")
    copilot.add("session.compaction_start")
    copilot.add("session.compaction_complete", success=False)
    assert is_marker(copilot.turn("c2"))


def test_a_compaction_that_a_killed_program_began_removed_nothing(copilot: Copilot) -> None:
    copilot.turn("c1")
    copilot.add("session.compaction_start")
    copilot.add("session.resume")
    assert is_marker(copilot.turn("c2"))


@pytest.mark.parametrize("kind", ["session.truncation", "session.context_cleared", "session.snapshot_rewind"])
def test_after_going_back_only_later_results_count(copilot: Copilot, kind: str) -> None:
    copilot.turn("c1")
    copilot.add(kind)
    assert copilot.turn("c2") is None


def test_a_sub_agent_sees_its_own_results_only(copilot: Copilot) -> None:
    copilot.turn("c1")
    assert copilot.turn("c2", agent="a") is None
    assert is_marker(copilot.turn("c3", agent="a"))
    assert is_marker(copilot.turn("c4"))


def test_equal_parallel_calls_do_not_point_at_each_other(copilot: Copilot) -> None:
    copilot.calls("c1", "c2")
    assert [copilot.hook(), copilot.hook()] == [None, None]


def test_a_result_that_somebody_changed_afterwards_is_no_source(copilot: Copilot) -> None:
    copilot.calls("c1")
    copilot.hook()
    copilot.ended("c1", "changed by another hook")
    assert copilot.turn("c2") is None


def test_a_recall_is_answered_by_the_hook(copilot: Copilot) -> None:
    copilot.path.with_name("f").write_text(TEXT)
    copilot.turn("c1")
    assert is_marker(copilot.turn("c2"))
    command = f"readcache recall {copilot.sessions.get('s').tag}.2"
    copilot.calls("c3", command=command)
    printed = "bash: readcache: command not found\n<shellId: 0 completed with exit code 127>"
    assert copilot.hook(command=command, printed=printed) == f"{TEXT}{TAIL}\n"
