"""Codex CLI's hook on events and session files as the real one (0.169.0) writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from readcache import Sessions
from readcache.core.sync.recall import UNANSWERED
from readcache.hosts.codex import HOST
from readcache.hosts.hooks import hook_answer

TEXT = "".join(f"line {number} of a file that is read twice\n" for number in range(60))


class Codex:
    """A session: its file, and what the hook answers."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.sessions = directory, Sessions(directory)
        self.entries: list[dict[str, Any]] = []

    def add(self, kind: str, **payload: Any) -> None:
        self.entries.append({"timestamp": "t", "type": kind, "payload": payload})

    def call(self, name: str, command: str = "cat f") -> None:
        arguments = json.dumps({"cmd": command})
        self.add("response_item", type="function_call", name="exec_command", arguments=arguments, call_id=name)

    def ended(self, name: str, status: int = 0) -> None:
        item = {"type": "CommandExecution", "id": name, "exit_code": status}
        self.add("event_msg", type="item_completed", item=item)

    def shown(self, name: str, text: str) -> None:
        self.add("response_item", type="function_call_output", call_id=name, output=text)

    def hook(
        self, name: str, text: str = TEXT, command: str = "cat f", *, was_shown: bool = True, **more: Any
    ) -> str | None:
        """What is to stand in the place of the result. `was_shown`: the host was told."""
        path = self.directory / "rollout.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in self.entries))
        event = {
            "hook_event_name": "PostToolUse",
            "session_id": "s",
            "transcript_path": str(path),
            "cwd": str(self.directory),
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_response": text,
            "tool_use_id": name,
        }
        sessions = self.sessions.at(None, "/", self.sessions.policy, "codex")
        answer = hook_answer("codex", json.dumps(event | more).encode(), sessions)
        sessions.end_event(was_shown=was_shown, keep=True)
        if not answer:
            return None
        decided = json.loads(answer)
        assert decided["decision"] == "block"
        return str(decided["reason"])

    def run(self, name: str, text: str = TEXT, command: str = "cat f", status: int = 0, **more: Any) -> str | None:
        """A call from its beginning to the place of its result in the file."""
        self.call(name, command)
        self.ended(name, status)
        reason = self.hook(name, text, command, **more)
        self.shown(name, reason or f"Chunk ID: x\nProcess exited with code {status}\nOutput:\n{text}")
        return reason


@pytest.fixture
def codex(tmp_path: Path) -> Codex:
    return Codex(tmp_path)


def test_a_second_read_is_answered_with_its_exit_status(codex: Codex) -> None:
    assert codex.run("a") is None
    reason = codex.run("b", command="cat f; exit 3", status=3)
    assert reason is not None
    assert reason.startswith("Process exited with code 3\nOutput:\n[")


def test_parallel_calls_are_sources_for_later_ones(codex: Codex) -> None:
    """Each has a hook of its own, which reads the file before it has the results of the others."""
    texts = {name: TEXT.replace("line", name) for name in "abc"}
    for name in texts:
        codex.call(name, f"cat {name}")
        codex.ended(name)
    assert [codex.hook(name, text, f"cat {name}") for name, text in texts.items()] == [None, None, None]
    for name, text in texts.items():
        codex.shown(name, f"Process exited with code 0\nOutput:\n{text}")
    assert all(codex.run(f"{name}2", text, f"cat {name}") for name, text in texts.items())


def test_a_command_whose_status_is_not_known_is_not_touched_and_no_source(codex: Codex) -> None:
    codex.call("a")
    assert codex.hook("a") is None
    codex.shown("a", "exec_command failed: it could not be started")
    assert codex.run("b") is None
    assert codex.run("c") is not None


def test_a_command_that_was_polled_from_the_background_is_not_touched_and_no_source(codex: Codex) -> None:
    codex.run("before")
    codex.add("compacted", replacement_history=[codex.entries[-1]["payload"]])
    codex.call("a")
    codex.shown("a", "Process running with session ID 7\nOutput:\n" + TEXT[:100])
    codex.add("response_item", type="function_call", name="write_stdin", arguments="{}", call_id="poll")
    codex.ended("a")
    assert codex.hook("a") is None
    codex.shown("poll", "Process exited with code 0\nOutput:\n" + TEXT[100:])
    codex.add("compacted", replacement_history=[codex.entries[-1]["payload"]])
    assert codex.run("b") is None


def test_what_a_background_command_wrote_is_known(codex: Codex) -> None:
    codex.run("a")
    codex.call("w", "sleep 20; sed -i s/a/b/ f")
    codex.shown("w", "Process running with session ID 7\nOutput:\n")
    codex.ended("w")
    assert codex.hook("w", "", "sleep 20; sed -i s/a/b/ f") is None
    assert codex.run("b") is None  # as a file that was written since


def test_calls_made_at_once_do_not_point_at_each_other(codex: Codex) -> None:
    codex.call("a")
    codex.call("b")
    codex.ended("a")
    codex.ended("b")
    assert codex.hook("a") is None
    codex.shown("a", f"Process exited with code 0\nOutput:\n{TEXT}")
    assert codex.hook("b") is None


def test_a_result_that_was_cut_is_shown_again_where_it_was_cut(codex: Codex) -> None:
    head = "Warning: truncated output (original token count: 900)\nTotal output lines: 60\n\n"
    assert codex.run("a", f"{head}{TEXT[:800]}…500 tokens truncated…{TEXT[-800:]}") is None
    reason = codex.run("b")
    assert reason is not None
    assert "line 30 of" in reason
    assert "line 3 of" not in reason


@pytest.mark.parametrize("left", [{"replacement_history": []}, {"message": "a summary"}])
def test_what_was_compacted_is_shown_again(codex: Codex, left: dict[str, Any]) -> None:
    codex.run("a")
    codex.add("compacted", **left)
    assert codex.run("b") is None
    assert codex.run("c") is not None


def test_what_a_compaction_kept_is_a_source(codex: Codex) -> None:
    codex.run("a")
    kept = [entry["payload"] for entry in codex.entries if entry["type"] == "response_item"]
    codex.add("compacted", replacement_history=kept)
    assert codex.run("b") is not None


def test_what_a_compaction_took_away_is_put_back_and_is_a_source(codex: Codex) -> None:
    codex.run("a")
    assert HOST.hook is not None
    event = {"hook_event_name": "SessionStart", "source": "compact", "session_id": "s"}
    answer = HOST.hook(event, codex.sessions)
    assert answer is not None
    section = answer["hookSpecificOutput"]["additionalContext"]
    assert TEXT in section
    codex.add("compacted", replacement_history=[{"type": "message", "role": "user", "content": "a summary"}])
    part = {"type": "input_text", "text": section}
    codex.add("response_item", type="message", role="developer", content=[part])
    reason = codex.run("b")
    assert reason is not None
    assert 'in the section "Files restored after compaction"' in reason
    assert HOST.hook(event | {"source": "startup"}, codex.sessions) is None


def test_after_going_back_all_is_shown_again(codex: Codex) -> None:
    codex.run("a")
    codex.add("event_msg", type="thread_rolled_back", num_turns=1)
    assert codex.run("b") is None


def test_a_patch_is_a_write(codex: Codex) -> None:
    codex.run("a")
    changes = {str(codex.directory / "f"): {"type": "update"}}
    codex.add("event_msg", type="item_completed", item={"type": "FileChange", "id": "p", "changes": changes})
    assert codex.run("b") is None
    assert codex.run("c") is not None


def test_a_sub_agent_is_a_reader_of_its_own(codex: Codex) -> None:
    codex.run("a")
    assert codex.run("b", agent_id="sub") is None


def test_what_a_hook_could_not_tell_its_host_is_shown_again(codex: Codex) -> None:
    codex.run("a", was_shown=False)
    assert codex.run("b") is None
    assert codex.run("c") is not None


@pytest.mark.parametrize(
    "more",
    [
        {"transcript_path": None},
        {"tool_name": "apply_patch"},
        {"hook_event_name": "PreToolUse"},
        {"tool_response": {"content": []}},
    ],
)
def test_other_events_and_sessions_without_a_file_are_left_alone(codex: Codex, more: dict[str, Any]) -> None:
    codex.run("a")
    assert codex.run("b", **more) is None


def test_the_events_name_the_model(codex: Codex) -> None:
    codex.run("a", model="claude-opus-5")
    assert codex.sessions.get("s").policy.chars_per_token == 2.0


@pytest.mark.parametrize(("status", "printed"), [(0, UNANSWERED), (127, "bash: readcache: command not found\n")])
def test_a_recall_is_answered_by_the_hook(codex: Codex, status: int, printed: str) -> None:
    codex.run("a")
    codex.run("b")
    tag = codex.sessions.get("s").tag
    codex.add("compacted", message="a summary", replacement_history=[])
    reason = codex.run("c", printed, f"readcache recall {tag}.2", status)
    assert reason == f"Process exited with code 0\nOutput:\n{TEXT}"
    reason = codex.run("d", printed, "readcache recall 0000.2", status)
    assert reason is not None
    assert reason.startswith("Process exited with code 1\nOutput:\nreadcache: no call 0000.2")
    assert codex.run("e", printed, f"readcache recall {tag}.2 | head", status) is None
    assert codex.run("f") is None, "what was recalled is no source"
