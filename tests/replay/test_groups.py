"""`readcache replay --by`: a row for each session, day or project, none hidden by a total."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from readcache.cli.main import main
from tests.replay.loaded import DATA
from tests.replay.sessions import bash, sed, session, write
from tests.replay.test_turns import AGAIN, READ, rollout

NAMES = ("default", "delta", "max")


def rows(capsys: pytest.CaptureFixture[str], by: str, *words: str) -> list[dict[str, Any]]:
    assert main(["replay", "--json", "--by", by, *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["by"] == by
    return list(found["rows"])


def codex(path: Path, name: str, directory: str, day: str, *, repeats: int = 1) -> None:
    made = rollout([READ], *[[AGAIN]] * repeats)
    for row in made:
        row["timestamp"] = f"{day}T12:00:00Z"
    made[0]["payload"] |= {"id": name, "cwd": directory}
    made[1]["payload"]["cwd"] = directory
    text = "".join(json.dumps(row) + "\n" for row in made)
    path.write_text(text.replace('"c0.0"', f'"first of {name}"'))


@pytest.fixture
def three(tmp_path: Path) -> Path:
    codex(tmp_path / "a.jsonl", "one", "/home/me/shop", "2026-11-01")
    codex(tmp_path / "b.jsonl", "two", "/home/me/shop", "2026-11-02", repeats=9)
    codex(tmp_path / "c.jsonl", "three", "/home/me/tool", "2026-11-02", repeats=3)
    return tmp_path


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("session", {"two": 10, "three": 4, "one": 2}),
        ("project", {"/home/me/shop": 12, "/home/me/tool": 4}),
        ("day", {"2026-11-01": 2, "2026-11-02": 14}),
    ],
)
def test_each_group_is_a_row_and_the_rows_add_up(
    by: str, expected: dict[str, int], three: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows(capsys, by, str(three))
    assert {row["name"]: row["requests"] for row in found} == expected
    assert [row["name"] for row in found] == [*expected], "the dearest first, days in order"
    assert main(["replay", "--json", str(three)]) == 0
    total = json.loads(capsys.readouterr().out)
    assert sum(row["bill"] for row in found) == total["counts"]["bill"] > 0
    for name in NAMES:
        assert sum(row["policies"][name]["saved_bill"] for row in found) == total["policies"][name]["saved_bill"]
    assert {row["model"] for row in found} == {"gpt-5.4"}


def test_the_table_has_every_row_and_a_last_one_for_all(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--by", "session", str(three)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert max(map(len, out)) <= 100
    begins = [line.split()[0] for line in out if line]
    assert begins[:5] == ["session", "two", "three", "one", "all"]
    assert out[0].split() == ["session", "model", "requests", "cost", *NAMES, "best", "schedule", "bill"]


def test_what_has_no_usage_is_measured_by_its_output_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "s.jsonl", session(sed(1, 100), sed(20, 80), name="plain"))
    (row,) = rows(capsys, "session", str(path))
    assert (row["name"], row["requests"], row["bill"], row["best"]) == ("plain", 0, 0, None)
    assert row["policies"]["max"]["saved"] > 0
    assert main(["replay", "--by", "session", str(path)]) == 0
    out = capsys.readouterr().out
    assert "n/a*" in out
    assert "* no bill is known: the changes by presets are shares of the tool output" in out


def test_the_best_schedule_of_a_row_is_the_cheapest_that_misses_few_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filling = [bash(f"make {n}", f"{n} words of it\n" * 2000) for n in range(40)]
    path = write(tmp_path / "s.jsonl", session(*filling, name="long"), session(*filling[:2], name="short"))
    found = rows(capsys, "session", str(path), "--conversation", "mask:3", "--conversation", "clear:100k:60k")
    best = {row["name"]: row["best"]["schedule"] for row in found}
    assert best == {"long": "clear:100k:60k", "short": "recorded"}
    (long,) = (row for row in found if row["name"] == "long")
    assert -1 < long["best"]["change"] < 0


def test_a_day_without_times_is_that_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "s.jsonl", session(sed(1, 100)))
    os.utime(path, (1_000_000, 1_000_000))
    (row,) = rows(capsys, "day", str(path))
    assert row["name"] == "1970-01-12"


def test_the_page_has_the_rows(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--by", "project", "--html", str(three / "page.html"), str(three / "a.jsonl")]) == 0
    capsys.readouterr()
    page = (three / "page.html").read_text(encoding="utf-8")
    assert "By project" in page
    assert "/home/me/shop" in page


def test_every_transcript_here_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(row["sessions"] for row in rows(capsys, "session", str(DATA))) == 13
    named = {row["name"] for row in rows(capsys, "project", str(DATA))}
    assert len(named) > 5
    assert main(["replay", "--by", "week", str(DATA)]) == 2
