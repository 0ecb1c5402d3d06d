from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from readcache.cli.main import main

Capture = pytest.CaptureFixture[str]
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(autouse=True)
def _shown(work: Path, capfd: Capture) -> None:  # noqa: ARG001  it names the session
    """Three calls, of which b has a marker in the place of lines that a showed."""
    main(["run", "--call-id", "a", "-c", "head -200 f"])
    main(["run", "--call-id", "b", "-c", "cat f"])
    capfd.readouterr()


def said(capfd: Capture, *arguments: str) -> str:
    assert main(arguments) == 0
    return capfd.readouterr().out


def test_restore_prints_the_section(capfd: Capture, work: Path) -> None:
    section = said(capfd, "restore")
    assert section.startswith("## Files restored after compaction\n")
    assert section.endswith("line 300 of the file\n")
    assert f"### {work}/f lines 1-300: " in section


def test_a_plan_makes_the_round_trip_through_a_file_and_is_credited(capfd: Capture, work: Path) -> None:
    (work / "plan.json").write_text(said(capfd, "restore", "--json", "--keep", "b"))
    plan = json.loads((work / "plan.json").read_text())
    assert [(item["start"], item["end"]) for item in plan["items"]] == [(1, 200)]
    told = json.loads(said(capfd, "compacted", "--keep", "b", "--restored", "plan.json"))
    assert 'the section "Files restored after compaction"' in told["rewrites"]["b"]
    assert "in the section" in said(capfd, "run", "-c", "sed -n '20,120p' f")
    assert plan["text"].count("\n") == 202


def test_a_plan_is_taken_from_stdin(capfd: Capture, run: Run) -> None:
    plan = said(capfd, "restore", "--json").encode()
    told = json.loads(run("compacted", "--restored", "-", stdin=plan).stdout)
    assert told["restored_id"].startswith("restored-")


def test_a_budget_is_taken_from_the_command_line(capfd: Capture) -> None:
    assert len(said(capfd, "restore", "--max-tokens", "200")) <= 800
    assert said(capfd, "restore", "--max-files", "0") == ""
    assert len(said(capfd, "restore", "--max-tokens-per-file", "100")) <= 600


def test_the_bytes_are_those_on_disk(capfd: Capture, work: Path) -> None:
    (work / "f").write_text("changed meanwhile\n" * 300)
    assert "changed meanwhile" in said(capfd, "restore")


@pytest.mark.parametrize("given", ["list.json", "-"])
def test_a_plan_goes_by_the_message_list_too(capfd: Capture, work: Path, run: Run, given: str) -> None:
    (work / "g").write_text((work / "f").read_text())
    main(["run", "--call-id", "c", "-c", "cat g"])
    calls = [("a", "bash", {"command": "cat f"}), ("t", "Task", {"prompt": f"what is in {work}/f?"})]
    functions = [(call_id, {"name": name, "arguments": json.dumps(said)}) for call_id, name, said in calls]
    made = [{"id": call_id, "type": "function", "function": function} for call_id, function in functions]
    listed = json.dumps([{"role": "assistant", "content": None, "tool_calls": made}])
    (work / "list.json").write_text(listed)
    capfd.readouterr()
    assert "named" not in said(capfd, "restore", "--json")
    plan = run("restore", "--json", "--messages", given, stdin=listed.encode()).stdout
    (why,) = (item["why"] for item in json.loads(plan)["items"] if item["path"] == f"{work}/f")
    assert "mentioned 3 calls ago" in why


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["restore", "--max-tokens", "many"], 2),
        (["restore", "--messages", "nosuch.json"], 2),
        (["restore", "--messages", "f"], 2),
        (["restore", "--max-tokens", "-1"], 2),
        (["compacted", "--restored", "nosuch.json"], 2),
        (["compacted", "--restored", "f"], 2),
        (["restore", "--store", "garbage"], 1),
    ],
)
def test_a_failure_is_one_line(capfd: Capture, work: Path, arguments: list[str], status: int) -> None:
    (work / "garbage").write_text("no database " * 100)
    assert main(arguments) == status
    assert capfd.readouterr().err.count("\n") == 1


def test_restore_without_a_session_is_a_usage_error(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    assert main(["restore"]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_a_session_or_reader_of_which_nothing_was_recorded_is_an_expected_failure(capfd: Capture) -> None:
    for command in (["restore"], ["compacted"]):
        assert main([*command, "--session", "misspelt"]) == 1
        assert "nothing of session misspelt was recorded in " in capfd.readouterr().err
        assert main([*command, "--agent", "nobody"]) == 1
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "nobody" in err
        assert "main" in err


def test_no_store_is_made_for_a_session_that_is_in_none(capfd: Capture, work: Path) -> None:
    for command in (["restore"], ["compacted"]):
        assert main([*command, "--store", "nosuch.db"]) == 1
        assert "nothing of session s was recorded in " in capfd.readouterr().err
    assert not (work / "nosuch.db").exists()


@pytest.mark.parametrize("command", ["restore", "compacted"])
def test_an_id_to_keep_that_names_no_call_is_said(capfd: Capture, command: str) -> None:
    assert main([command, "--keep", "a", "nosuch"]) == 0
    out, err = capfd.readouterr()
    assert out
    assert err.count("\n") == 1
    assert err.endswith(": nosuch\n")
