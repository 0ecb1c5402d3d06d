"""What a transcript proves. It was recorded from Claude Code 2.1.330, less what is not read of it: a turn with three
calls made at once, a compaction that showed shop.py again, a resumption, and a return to before that one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from readcache.hosts.claude_code.proof import transcripts
from readcache.transcripts.claude_code import Transcript
from readcache.transcripts.tools import bare

RECORDED = Path(__file__).parent / "claude-code-2.1.330.jsonl"
TRANSCRIPT = Transcript(RECORDED.read_bytes())


def request_contains(source: str, call_id: str) -> bool:
    """Does the transcript prove that the request behind a call held the line of a source?"""
    return "item_5 = 5" in TRANSCRIPT.lines_of(source, call_id)


@pytest.mark.parametrize(
    ("source", "call_id", "is_contained"),
    [
        ("toolu_0001", "toolu_0002", True),
        ("toolu_0002", "toolu_0005", True),  # with numbers in front
        ("toolu_0004", "toolu_0006", True),  # one of three made at once
        ("toolu_0005", "toolu_0006", True),
        ("toolu_0003", "toolu_0004", False),  # made at once
        ("toolu_0004", "toolu_0004", False),
        ("toolu_0002", "toolu_0001", False),  # later
        ("toolu_0001", "toolu_0007", False),  # before the compaction
        ("toolu_0007", "toolu_0008", True),  # before the resumption
        ("toolu_0007", "toolu_0009", True),
        ("toolu_0008", "toolu_0009", False),  # gone back on
        ("toolu_0011", "toolu_0006", False),  # a sub-agent's
        ("unknown", "toolu_0006", False),
        ("toolu_0001", "unknown", False),
    ],
)
def test_a_line_is_held_by_the_request_behind_a_call(source: str, call_id: str, is_contained: bool) -> None:
    assert request_contains(source, call_id) is is_contained


def test_a_file_that_was_restored_is_held_from_then_on() -> None:
    ((name, file),) = TRANSCRIPT.restored_files()
    assert file["filePath"] == "/repo/shop.py"
    assert request_contains(name, "toolu_0007")
    assert request_contains(name, "toolu_0009")
    assert not request_contains(name, "toolu_0006")


def test_the_arguments_of_a_call_are_lines_too() -> None:
    assert "cat shop.py" in TRANSCRIPT.lines_of("toolu_0001", "toolu_0002")


@pytest.mark.parametrize("size", [0, 1, 1000, 5000, 20_000])
def test_the_end_of_a_transcript_proves_no_more_than_all_of_it(size: int) -> None:
    """A compaction was looked for in the last part of a log and never found. A host showed the hook's text to the
    person and the original to the model."""
    part = Transcript(RECORDED.read_bytes()[-size:] if size else b"")
    for source in ("toolu_0001", "toolu_0007", "toolu_0008"):
        for call_id in ("toolu_0007", "toolu_0008", "toolu_0009"):
            assert part.lines_of(source, call_id) <= TRANSCRIPT.lines_of(source, call_id)


def test_a_transcript_cut_anywhere_does_no_harm() -> None:
    data = RECORDED.read_bytes()
    for end in range(0, len(data), 997):
        part = Transcript(data[:end])
        list(part.restored_files())
        assert part.lines_of("toolu_0001", "toolu_0002") <= TRANSCRIPT.lines_of("toolu_0001", "toolu_0002")


def test_a_call_that_never_comes_is_not_waited_for_long(tmp_path: Path) -> None:
    assert not list(transcripts(str(tmp_path / "none.jsonl"), "toolu_0001"))
    assert not list(transcripts(str(tmp_path), "toolu_0001"))


@pytest.mark.parametrize(
    ("line", "without"),
    [("  12\tx", "x"), ("12→x", "x"), ("12: x", "x"), ("x\t1", "x\t1"), ("12", "12"), ("1.5 x", "1.5 x"), ("12\t", "")],
)
def test_a_number_in_front_of_a_line_is_none_of_it(line: str, without: str) -> None:
    assert bare(line) == without


def test_a_forked_conversation_names_its_source() -> None:
    lines = [{"type": "user"}, {"type": "assistant", "requestSessionId": "a"}, {"type": "user", "text": "sessionId"}]
    forked = Transcript("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode())
    assert forked.source("b") == "a"
    assert forked.source("a") is None
    assert TRANSCRIPT.source("b") is None
