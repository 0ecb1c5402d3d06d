from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from readcache.cli.main import main

Capture = pytest.CaptureFixture[str]


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


def test_a_plan_is_taken_from_stdin(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(said(capfd, "restore", "--json")))
    assert json.loads(said(capfd, "compacted", "--restored", "-"))["restored_id"].startswith("restored-")


def test_a_budget_is_taken_from_the_command_line(capfd: Capture) -> None:
    assert len(said(capfd, "restore", "--max-tokens", "200")) <= 800
    assert said(capfd, "restore", "--max-files", "0") == ""
    assert len(said(capfd, "restore", "--max-tokens-per-file", "100")) <= 600


def test_the_bytes_are_those_on_disk(capfd: Capture, work: Path) -> None:
    (work / "f").write_text("changed meanwhile\n" * 300)
    assert "changed meanwhile" in said(capfd, "restore")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["restore", "--max-tokens", "many"], 2),
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


def test_a_session_of_which_nothing_was_recorded_has_nothing_to_restore(capfd: Capture) -> None:
    assert said(capfd, "restore", "--session", "other") == ""
