"""Gemini CLI's hook on events and chat files as the real one (0.61.0) writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from readcache import Sessions
from readcache.core.sync.recall import UNANSWERED
from readcache.hosts.gemini import HOST
from readcache.transcripts.gemini import chat_messages

TEXT = "".join(f"line {number} of a file that is read twice\n" for number in range(60)).rstrip()


def framed(text: str, *more: str) -> str:
    """As the shell tool shows it."""
    tail = "".join(f"{line}\n" for line in (*more, "Process Group PGID: 4711"))
    return f"<untrusted_context>\nOutput: {text}\n{tail}</untrusted_context>"


class Gemini:
    """A chat: its file, and what the hook answers."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.sessions = directory, Sessions(directory)
        self.path = directory / "chat.jsonl"
        self.entries: list[dict[str, Any]] = [{"id": "0", "type": "user", "content": [{"text": "do it"}]}]
        self.number = 0

    def asked(self) -> None:
        """The model's message, whose calls are not in the file yet."""
        self.number += 1
        self.entries.append({"id": f"m{self.number}", "type": "gemini", "content": ""})

    def hook(self, name: str, shown: object, **given: Any) -> str | None:
        """What is to stand in the place of the result."""
        self.path.write_text("".join(json.dumps(entry) + "\n" for entry in self.entries))
        event = {
            "hook_event_name": "AfterTool",
            "session_id": "s",
            "transcript_path": str(self.path),
            "cwd": str(self.directory),
            "tool_name": name,
            "tool_input": given,
            "tool_response": {"llmContent": shown},
        }
        assert HOST.hook is not None
        answer = HOST.hook(event, self.sessions)
        return None if answer is None else str(answer["reason"])

    def answered(self, name: str, text: str, *, key: str = "output") -> None:
        response = {"functionResponse": {"id": f"{name}_{self.number}", "name": name, "response": {key: text}}}
        self.entries.append({"id": f"r{self.number}", "type": "user", "content": [response]})

    def run(self, name: str, shown: str, **given: Any) -> str | None:
        """A call from its beginning to the place of its result in the file."""
        self.asked()
        reason = self.hook(name, shown, **given)
        self.answered(name, reason or shown, key="error" if reason else "output")
        return reason

    def cat(self, *more: str) -> str | None:
        return self.run("run_shell_command", framed(TEXT, *more), command="cat f")

    def read(self, text: str = TEXT + "\n", **given: Any) -> str | None:
        return self.run("read_file", text, file_path="f", **given)


@pytest.fixture
def gemini(tmp_path: Path) -> Gemini:
    return Gemini(tmp_path)


def test_a_second_command_is_answered_in_the_frame_of_the_first(gemini: Gemini) -> None:
    assert gemini.cat() is None
    reason = gemini.cat("Exit Code: 3")
    assert reason is not None
    assert reason.startswith("Not an error: ")
    assert reason.endswith("\nExit Code: 3\nProcess Group PGID: 4711\n</untrusted_context>")
    assert TEXT not in reason


def test_the_first_line_stands_behind_a_word_of_the_cli_and_is_a_source_all_the_same(gemini: Gemini) -> None:
    gemini.cat()
    reason = gemini.read()
    assert reason is not None
    assert "line 0 of" not in reason


def test_lines_have_their_numbers_where_blank_ones_were_taken_away(gemini: Gemini) -> None:
    """Gemini CLI removes blank lines from the start of a command's output."""
    lines = TEXT.splitlines()
    (gemini.directory / "f").write_text("\n".join([lines[0], "", *lines[1:]]) + "\n")
    assert gemini.run("run_shell_command", framed("\n".join(lines[1:40])), command="sed -n '2,41p' f") is None
    again = gemini.run("run_shell_command", framed("\n".join(lines[4:30])), command="sed -n '6,31p' f")
    assert again is not None
    assert "f lines 6-31, above in" in again
    assert lines[10] not in again


def test_a_part_of_a_file_keeps_its_header(gemini: Gemini) -> None:
    gemini.cat()
    header = (
        "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 11-40 of 60 total lines.\n"
        "Action: read on.\n\n--- FILE CONTENT (truncated) ---\n"
    )
    part = "\n".join(TEXT.split("\n")[10:40])
    reason = gemini.read(header + part, start_line=11, end_line=40)
    assert reason is not None
    assert header in reason
    assert "lines 11-40" in reason.replace(header, "")


def test_what_the_edit_tools_wrote_is_known(gemini: Gemini) -> None:
    for name in ("replace", "write_file"):
        gemini.read()
        assert gemini.run(name, "done", file_path=str(gemini.directory / "f")) is None
        assert gemini.read() is None


def test_calls_made_at_once_do_not_point_at_each_other(gemini: Gemini) -> None:
    gemini.asked()
    assert gemini.hook("run_shell_command", framed(TEXT), command="cat f") is None
    assert gemini.hook("read_file", TEXT, file_path="f") is None


def test_what_a_compression_took_is_shown_again(gemini: Gemini) -> None:
    gemini.read()
    gemini.entries.append({"$set": {"messages": [{"id": "n", "type": "user", "content": [{"text": "a summary"}]}]}})
    assert gemini.read() is None
    assert gemini.read() is not None


def resumed(gemini: Gemini) -> None:
    """Write the chat again as `--resume` does: the calls become parts of the message, and each result comes twice."""
    history: list[dict[str, Any]] = []
    for entry in gemini.entries:
        asked = history[-1] if history and history[-1]["type"] == "gemini" else None
        if asked is not None:
            part = entry["content"][0]["functionResponse"]
            call = {"id": part["id"], "name": part["name"], "args": {"file_path": "f"}}
            asked["content"] = [{"functionCall": call}]
            history.append({**entry, "id": f"{asked['id']}_response"})
        history.append(dict(entry))
    gemini.entries.append({"sessionId": "s", "projectHash": "p", "kind": "main"})
    gemini.entries += [{"$set": {"messages": history[:1]}}, {"$set": {"messages": history}}]
    gemini.entries.append({"id": "next", "type": "user", "content": [{"text": "go on"}]})


def test_a_resumed_chat_still_has_what_was_shown_before(gemini: Gemini) -> None:
    store = gemini.directory / "s.db"
    gemini.sessions = Sessions(gemini.directory, store=store)
    gemini.read()
    resumed(gemini)
    gemini.sessions = Sessions(gemini.directory, store=store)
    assert gemini.read() is not None


def test_a_resumed_chat_still_has_its_calls(gemini: Gemini) -> None:
    gemini.read()
    resumed(gemini)
    messages, _ = chat_messages(json.dumps(entry) for entry in gemini.entries)
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert calls == [{"id": "read_file_1", "function": {"name": "read_file", "arguments": '{"file_path": "f"}'}}]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert results == ["read_file_1", "read_file_1"], "as often as the model is sent it"


def test_what_the_cli_masked_later_is_shown_again(gemini: Gemini) -> None:
    gemini.read()
    gemini.entries[-1] = json.loads(json.dumps(gemini.entries[-1]).replace(json.dumps(TEXT + "\n"), '"[masked]"'))
    assert gemini.read() is None


def test_nothing_is_left_out_for_a_sub_agent_nor_counts_as_shown_to_its_parent(gemini: Gemini) -> None:
    gemini.read()
    gemini.asked()
    gemini.hook("list_directory", "nothing")
    folder = gemini.directory / "s"
    folder.mkdir()
    inner = folder / "inner.jsonl"
    inner.write_text("{}\n")
    assert HOST.hook is not None
    stat = gemini.path.stat()
    os.utime(inner, ns=(stat.st_mtime_ns + 10**12, stat.st_mtime_ns + 10**12))
    assert gemini.hook("read_file", TEXT + "\n", file_path="f") is None
    assert gemini.hook("read_file", "another\n" * 60, file_path="g") is None
    os.utime(inner, ns=(0, 0))  # the sub-agent has ended, and the chat goes on
    assert gemini.read() is not None
    assert gemini.run("read_file", "another\n" * 60, file_path="g") is None


@pytest.mark.parametrize("shown", ["Command moved to background (PID: 7). Output hidden.", [{"inlineData": {}}], None])
def test_what_is_no_output_is_left_alone_and_what_the_command_wrote_is_known(gemini: Gemini, shown: object) -> None:
    gemini.read()
    gemini.asked()
    assert gemini.hook("run_shell_command", shown, command="sed -i s/a/b/ f") is None
    gemini.answered("run_shell_command", "something")
    assert gemini.read() is None


def test_without_a_chat_file_nothing_is_left_out(gemini: Gemini) -> None:
    gemini.read()
    event = {"hook_event_name": "AfterTool", "session_id": "s", "transcript_path": "", "tool_name": "read_file"}
    assert HOST.hook is not None
    assert HOST.hook(event, gemini.sessions) is None


def test_a_recall_is_answered_by_the_hook(gemini: Gemini) -> None:
    gemini.cat()
    gemini.cat()
    command = f"readcache recall {gemini.sessions.get('s').tag}.2"
    reason = gemini.run("run_shell_command", framed(UNANSWERED), command=command)
    assert reason is not None
    assert reason.startswith("Not an error: the call succeeded.\n")
    assert TEXT in reason
    assert UNANSWERED not in reason
