"""Every loader on the beginning of a real transcript, whole and damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from readcache.transcripts.files import Found, read_content, units_of
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import NotUnderstood
from readcache.transcripts.tools import replaced_lines
from readcache.transcripts.values import chars_in
from tests.replay.loaded import DATA, calls, kinds, load, removals, replay, requests

# name -> format, reader, calls by what they asked for, files written, requests with usage, cuts
FACTS = {
    "claude-code.jsonl": ("claude-code", 1, {"Command": 9, "Read": 3, "Tool": 1, "NoneType": 2}, 2, 15, 0),
    "claude-code-compaction.jsonl": ("claude-code", 1, {"Command": 1, "Read": 1, "Tool": 2, "NoneType": 2}, 0, 8, 1),
    "claude-code-sub-agent.jsonl": ("claude-code", 1, {"Command": 4, "Read": 2}, 0, 3, 0),
    "codex.jsonl": ("codex", 1, {"Command": 14, "NoneType": 2}, 15, 6, 0),
    "copilot.jsonl": ("copilot", 1, {"Command": 2, "Read": 3, "Tool": 4, "NoneType": 3}, 0, 0, 0),
    "gemini.jsonl": ("gemini", 1, {"Command": 2, "Read": 2}, 0, 5, 0),
    "mini-swe-agent-1.traj.json": ("mini-swe-agent", 1, {"Command": 10}, 0, 0, 0),
    "mini-swe-agent.traj.json": ("mini-swe-agent", 1, {"Command": 11}, 0, 11, 0),
    "opencode.json": ("opencode", 1, {"Command": 4, "NoneType": 2}, 2, 7, 0),
    "openhands/events": ("openhands", 1, {"Command": 4, "Read": 2, "NoneType": 1}, 1, 0, 0),
    "pi.jsonl": ("pi", 1, {"Command": 6, "Read": 5, "Tool": 6, "NoneType": 7}, 6, 27, 0),
    "swe-agent-1.traj": ("swe-agent", 1, {"Command": 7, "Read": 2, "NoneType": 4}, 3, 0, 0),
    "swe-agent.traj": ("swe-agent", 1, {"Command": 10, "NoneType": 2}, 2, 0, 0),
}


def test_every_transcript_has_its_facts() -> None:
    names = {path.name for path in DATA.iterdir() if path.is_file()} - {"README.md"}
    assert names | {"openhands/events"} == FACTS.keys()


@pytest.mark.parametrize("name", FACTS)
def test_a_transcript_is_known_by_its_content_and_its_calls_are_understood(name: str) -> None:
    form, readers, asked, written, billed, removed = FACTS[name]
    found = load(DATA / name)
    assert [recording.form for recording in found] == [form] * readers
    (recording,) = found
    assert kinds(recording) == asked
    assert sum(len(call.writes) for call in calls(recording)) == written
    assert len(requests(recording)) == billed
    assert len(removals(recording)) == removed
    assert len({call.call_id for call in calls(recording)}) == len(calls(recording))


TIMED = {"claude-code.jsonl": 15, "codex.jsonl": 16, "copilot.jsonl": 12, "opencode.json": 6, "pi.jsonl": 24}
EDITED = {
    "claude-code.jsonl": "\t// SubjectTokenType is the RFC 8693 sub",
    "codex.jsonl": '  "plugins": [\n    {\n      "name": "agen',  # context, and what the patch removes
    "opencode.json": "- [ ] Define the Kanban board contract f",
    "pi.jsonl": "# Output results in a readable format fo",
    "openhands/events": "TAX = 0.19",
}


@pytest.mark.parametrize("name", TIMED)
def test_results_have_the_times_of_the_transcript_in_order(name: str) -> None:
    times = [call.at for call in calls(load(DATA / name)[0]) if call.at is not None]
    assert len(times) == TIMED[name]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000


@pytest.mark.parametrize("name", EDITED)
def test_an_edit_tells_the_lines_that_the_agent_had_to_know(name: str) -> None:
    edits = [call for call in calls(load(DATA / name)[0]) if call.replaced]
    assert edits[0].replaced[:40] == EDITED[name]
    assert chars_in(edits[0].arguments) > len(edits[0].replaced)
    assert {call.tool for call in edits} == {"edit"}


def test_several_edits_of_one_call_tell_all_their_lines() -> None:
    edits = {"edits": [{"old_string": "a = 1", "new_string": "a = 2"}, {"old_string": "b\nc", "new_string": ""}]}
    assert replaced_lines(edits) == "a = 1\nb\nc"
    assert replaced_lines({}, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n kept\n-gone\n+new") == "kept\ngone"
    assert replaced_lines({"edits": "nonsense", "old_string": 3}) == ""


@pytest.mark.parametrize("name", FACTS)
def test_no_preset_leaves_anything_out_that_the_checker_cannot_prove(name: str) -> None:
    for recording in load(DATA / name):
        totals = replay(recording)
        assert [policy.wrong for policy in totals.policies.values()] == [[], [], []]
        assert not any(policy.counts["internal_error"] for policy in totals.policies.values())


def test_what_was_shown_before_is_found_in_real_transcripts() -> None:
    saved = {name: replay(load(DATA / name)[0]).policies["max"].counts["saved"] for name in FACTS}
    assert {name for name, chars in saved.items() if chars} >= {
        "claude-code.jsonl",
        "mini-swe-agent.traj.json",
        "opencode.json",
        "openhands/events",
        "pi.jsonl",
    }


@pytest.mark.parametrize("name", [name for name in FACTS if name.endswith(".jsonl")])
def test_a_damaged_line_costs_that_line_and_is_counted(name: str, tmp_path: Path) -> None:
    lines = (DATA / name).read_bytes().splitlines(keepends=True)
    whole = sum(len(calls(recording)) for recording in load(DATA / name))
    middle = len(lines) // 2
    lines[middle] = lines[middle][: len(lines[middle]) // 2] + b"\n"
    lines.insert(2, b"\x00\xff not JSON\n")
    (tmp_path / "damaged").write_bytes(b"".join(lines))
    (unit,) = units_of(Found(str(tmp_path / "damaged"), True, 1))
    content = read_content(unit)
    found = list(recordings_in(content))
    assert (content.damage.lines, content.damage.first) == (2, f"{tmp_path / 'damaged'}:3")
    assert 0 < sum(len(calls(recording)) for recording in found) <= whole
    for recording in found:
        assert not any(policy.counts["wrong"] for policy in replay(recording).policies.values())


@pytest.mark.parametrize("name", FACTS)
def test_a_transcript_that_ends_anywhere_is_read_to_there_or_refused_with_its_place(name: str, tmp_path: Path) -> None:
    if (DATA / name).is_dir():
        shutil.copytree(DATA / name, tmp_path / "events")
        path = sorted((tmp_path / "events").iterdir())[6]
        path.write_bytes(path.read_bytes()[:100])
        assert len(calls(load(tmp_path / "events")[0])) < len(calls(load(DATA / name)[0]))
        return
    text, whole = (DATA / name).read_bytes(), [len(calls(recording)) for recording in load(DATA / name)]
    for part in (0.13, 0.5, 0.87, 0.999):
        path = tmp_path / "cut"
        path.write_bytes(text[: int(len(text) * part)])
        if name.endswith(".jsonl"):
            assert sum(len(calls(recording)) for recording in load(path)) <= sum(whole)
        else:
            with pytest.raises(NotUnderstood, match=f"^{path}:"):
                load(path)
