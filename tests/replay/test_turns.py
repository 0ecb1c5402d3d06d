"""Where the turns of a conversation go: a turn belongs to a kind if all its calls do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from readcache.cli.main import main
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.policy_run import FilesShown
from readcache.report.replay.replay_totals import ReplayTotals
from readcache.report.replay.replayer import replay_recording
from readcache.report.replay.turns import TurnKinds
from readcache.transcripts.records import RequestSent
from tests.replay.loaded import PRESETS, load_rows
from tests.replay.sessions import lines

Row = dict[str, Any]
# dollars for a million tokens of input, read, write, output of gpt-5.4
PROMPT, OUTPUT = 100_000, 500


def rollout(*answers: list[tuple[str, Row, str]], tokens: int = PROMPT) -> list[Row]:
    """Codex's rows: each answer is a list of parallel calls (tool, arguments, output)."""
    rows: list[tuple[str, Row]] = [
        ("session_meta", {"id": "s", "cwd": "/w"}),
        ("turn_context", {"model": "gpt-5.4", "cwd": "/w"}),
    ]
    total = 0
    for at, answer in enumerate(answers):
        for n, (tool, given, _) in enumerate(answer):
            asked = {"type": "function_call", "name": tool, "arguments": json.dumps(given), "call_id": f"c{at}.{n}"}
            rows.append(("response_item", asked))
        if not answer:
            rows.append(("response_item", {"type": "message", "role": "assistant", "content": []}))
        total += tokens + OUTPUT
        last = {"input_tokens": tokens, "cached_input_tokens": tokens - 1000, "output_tokens": OUTPUT}
        info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
        rows.append(("event_msg", {"type": "token_count", "info": info}))
        for n, (_, _, output) in enumerate(answer):
            result = {"type": "function_call_output", "call_id": f"c{at}.{n}", "output": output}
            rows.append(("response_item", result))
        if not answer:
            rows.append(("response_item", {"type": "message", "role": "user", "content": []}))
    return [{"type": kind, "payload": payload} for kind, payload in rows]


def command(text: str, output: str, status: int = 0) -> tuple[str, Row, str]:
    head = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {status}\nOutput:\n"
    return "exec_command", {"cmd": text}, head + output


POLL = ("write_stdin", {"session_id": 5, "chars": "", "yield_time_ms": 1000}, "Output:\n")
TYPED = ("write_stdin", {"session_id": 5, "chars": "y\n"}, "Output:\n")
PATCH = {"input": "*** Begin Patch\n*** Update File: app.py\n@@\n-a\n+b\n*** End Patch"}
READ, AGAIN = command("sed -n '1,90p' app.py", lines(1, 90)), command("sed -n '20,60p' app.py", lines(20, 60))


def replayed(directory: Path, *answers: list[tuple[str, Row, str]]) -> ReplayTotals:
    (found,) = load_rows(directory, rollout(*answers))
    return replay_recording(found, PRESETS)


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("polls", [POLL]),
        ("polls", [("wait", {"cell_id": "1"}, "running"), POLL]),
        ("rest", [TYPED]),
        ("to-do lists", [("update_plan", {"plan": []}, "Plan updated")]),
        ("edits", [("apply_patch", PATCH, "Success. Updated app.py")]),
        ("failures", [("apply_patch", PATCH, "error: the lines were not found")]),
        ("failures", [command("cat nowhere.py", "cat: nowhere.py: No such file or directory\n", 1)]),
        ("edits", [command("sed -i 's/a/b/' app.py", "")]),
        ("tests and builds", [command("cd /w && python -m pytest -q", "1 failed\n", 1)]),
        ("tests and builds", [command("npm run build 2>&1 | tail -5", "done\n")]),
        ("rest", [command("git log --oneline", "a1 b\n")]),
        ("rest", [command("git commit -m 'run pytest; make test'", "a1 b\n")]),
        ("edits", [command("cat >t.py <<'E'\nimport pytest\nE\n", "")]),
        ("visible reads", [AGAIN]),
        ("other reads", [command("sed -n '80,120p' app.py", lines(80, 120))]),
        ("rest", [POLL, AGAIN]),
        ("rest", []),
    ],
)
def test_a_turn_belongs_to_a_kind_if_all_its_calls_do(
    kind: str, calls: list[tuple[str, Row, str]], tmp_path: Path
) -> None:
    found = replayed(tmp_path, [READ], calls).turns["codex"]
    expected = {"other reads": 1}
    expected[kind] = expected.get(kind, 0) + 1
    assert {name: count for name, count in found.items() if count} == expected


def test_calls_of_one_request_are_one_turn_though_the_host_names_no_batch() -> None:
    turns = TurnKinds(None)
    for answer in (2, 1):
        turns.sent(RequestSent(cache_read=PROMPT))
        for number in range(answer):
            turns.call(ToolCall(f"c{number}", "update_plan", {}, ""), FilesShown(0, 0))
    turns.end()
    assert turns.turns == {"to-do lists": 2}


def test_a_turn_costs_its_prompt_from_the_cache_and_its_output(tmp_path: Path) -> None:
    totals = replayed(tmp_path, [READ], [POLL], [POLL])
    read, output = 0.25, 15  # dollars for a million tokens: gpt-5.4
    assert totals.turn_bills["codex"]["polls"] == pytest.approx(2 * (PROMPT * read + OUTPUT * output), abs=2)
    assert totals.turn_bills["codex"]["all"] == totals.counts["bill"]
    assert sum(totals.turns["codex"].values()) == 3


def test_the_table_and_the_page_have_each_host_and_name_the_setting_that_changes_a_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rollout([READ], [AGAIN], *[[POLL]] * 3)))
    assert main(["replay", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  polls of a running command +60\.0 % +\d\d\.\d %$", out, re.MULTILINE)
    said = [line for line in out.splitlines() if "yield_time_ms" in line]
    assert len(said) == 1
    assert main(["replay", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["turns"]["codex"]["polls"]["turns"] == 3
    assert found["turns"]["codex"]["all"] == {"turns": 5, "bill": found["counts"]["bill"]}
    assert [sentence for sentence in found["settings"] if "yield_time_ms" in sentence]
    assert main(["replay", str(path), "--html", str(tmp_path / "p.html")]) == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "Where your turns go" in page
    assert "yield_time_ms" in page


def test_below_two_per_cent_no_setting_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rollout([POLL], *[[READ]] * 99)))
    assert main(["replay", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"] == []


def test_to_do_lists_of_claude_code_have_a_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Row] = []
    for n, tool in enumerate(["TodoWrite", "TaskCreate", "TaskUpdate", "Bash", "BashOutput"]):
        block = {"type": "tool_use", "id": f"t{n}", "name": tool, "input": {"command": "ls"} if tool == "Bash" else {}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": "ok"}
        usage = {"input_tokens": 900, "output_tokens": 9}
        message = {"id": f"m{n}", "model": "claude-opus-4-6", "content": [block], "usage": usage}
        above = f"r{n - 1}" if n else None
        rows.append({"uuid": f"a{n}", "parentUuid": above, "sessionId": "s", "type": "assistant", "message": message})
        entry = {"uuid": f"r{n}", "parentUuid": f"a{n}", "sessionId": "s", "type": "user"}
        rows.append({**entry, "message": {"content": [result]}})
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["replay", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["turns"]["claude-code"]["to-do lists"]["turns"] == 3
    assert found["turns"]["claude-code"]["polls"]["turns"] == 1
    (said,) = [sentence for sentence in found["settings"] if "TodoWrite" in sentence]
    assert said.startswith("claude-code: ")


def test_without_usage_fields_turns_are_counted_and_no_bill_is_guessed(tmp_path: Path) -> None:
    rows = [row for row in rollout([READ], [AGAIN], [POLL]) if row["payload"].get("type") != "token_count"]
    (found,) = load_rows(tmp_path, rows)
    totals = replay_recording(found, PRESETS)
    assert totals.turns["codex"]["polls"] == 1
    assert sum(totals.turns["codex"].values()) == 3
    assert not totals.turn_bills["codex"].total()
