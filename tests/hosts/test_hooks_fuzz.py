"""Events of hosts in which any value is another one: the hook prints an answer or nothing, and ends in order."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.hosts import find_host
from readcache.hosts.claude_code.proof import tail
from readcache.hosts.hooks import hook
from tests.helpers.spoiled import spoil

OUTPUT = "".join(f"{n} bottles of beer on the wall\n" for n in range(40))


def claude_events(directory: str) -> list[dict[str, Any]]:
    """Two calls, with a transcript that proves nothing."""
    path = Path(directory, "t.jsonl")
    path.write_text('{"type":"assistant","uuid":"u","message":{"id":"m","content":[{"type":"tool_use","id":"c1"}]}}\n')
    response = {"stdout": OUTPUT, "stderr": "", "interrupted": False, "isImage": False}
    call = {"tool_name": "Bash", "tool_input": {"command": "cat f"}, "tool_response": response, "cwd": directory}
    event = {"session_id": "s", "transcript_path": str(path), "hook_event_name": "PostToolUse", **call}
    return [{**event, "tool_use_id": "c1"}, {**event, "tool_use_id": "c2"}]


EVENTS: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "claude-code": claude_events,
    "codex": lambda directory: [dict(event) for event in find_host("codex").trial(directory)],
    "copilot": lambda directory: [dict(event) for event in find_host("copilot").trial(directory)],
    "gemini": lambda directory: [dict(event) for event in find_host("gemini").trial(directory)],
}


@pytest.mark.parametrize("name", EVENTS)
@given(seed=st.integers(0, 10**6))
def test_any_value_of_an_event_may_be_another(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("READCACHE_STORE", str(tmp_path / "store.db"))
    monkeypatch.setattr("readcache.hosts.claude_code.proof.PATIENCE", 0.0)
    monkeypatch.setattr("readcache.hosts.copilot.SOON", 0.0)
    monkeypatch.setattr("readcache.hosts.copilot.PATIENCE", 0.0)
    events = copy.deepcopy(EVENTS[name](str(tmp_path)))
    spoil(seed, events)
    for event in events:
        said = json.dumps(event).encode()
        hook([name], said)
        printed = capfd.readouterr()
        assert printed.err == ""
        assert printed.out == "" or isinstance(json.loads(printed.out), dict)


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize(
    "said", [b"", b"\xff", b"[]", b"null", b'{"a":' * 100_000, b"1" * 5_000, b'{"session_id": 1e999}']
)
def test_what_is_no_event_is_answered_with_nothing(
    name: str, said: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hook([name], said)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("kind", ["a pipe", "a device without an end", "a directory", "a name with a NUL"])
def test_a_transcript_that_is_no_plain_file_is_not_waited_for(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("READCACHE_STORE", str(tmp_path / "store.db"))
    monkeypatch.setattr("readcache.hosts.claude_code.proof.PATIENCE", 0.0)
    monkeypatch.setattr("readcache.hosts.copilot.SOON", 0.0)
    monkeypatch.setattr("readcache.hosts.copilot.PATIENCE", 0.0)
    os.mkfifo(tmp_path / "pipe")
    paths = {"a pipe": tmp_path / "pipe", "a device without an end": "/dev/zero", "a directory": tmp_path}
    for event in EVENTS[name](str(tmp_path)):
        path = str(paths.get(kind, "a\0b"))
        named = {key: path for key in event if key in ("transcript_path", "transcriptPath")}
        hook([name], json.dumps(event | named).encode())
        assert capfd.readouterr().out == ""


def test_no_more_of_a_transcript_is_read_than_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b"0123456789")
    assert [tail(str(tmp_path / "t.jsonl"), size) for size in (4, 100)] == [b"6789", b"0123456789"]
