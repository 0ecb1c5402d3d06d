"""Transcripts in which any value is another one: a loader reads what it can, counts the rest, and comes to an end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.transcripts.records import NotUnderstood
from tests.helpers.spoiled import spoil
from tests.replay.loaded import DATA, load_rows, replay

pytestmark = pytest.mark.slow  # changes each value of each format

LINES = sorted(path.name for path in DATA.glob("*.jsonl"))
DOCUMENTS = sorted(path.name for path in DATA.iterdir() if path.is_file() and path.suffix in (".json", ".traj"))


def read_all(directory: Path, rows: list[Any]) -> None:
    try:
        for recording in load_rows(directory, rows):
            replay(recording)
    except NotUnderstood:
        pass


@pytest.mark.parametrize("name", LINES)
@given(seed=st.integers(0, 10**6))
def test_any_value_of_a_line_may_be_another(name: str, tmp_path: Path, seed: int) -> None:
    rows = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()][:25]
    spoil(seed, rows)
    read_all(tmp_path, rows)


@pytest.mark.parametrize("name", DOCUMENTS)
@given(seed=st.integers(0, 10**6))
def test_any_value_of_a_document_may_be_another(name: str, tmp_path: Path, seed: int) -> None:
    document = json.loads((DATA / name).read_text(encoding="utf-8"))
    spoil(seed, document)
    read_all(tmp_path, [document])


@pytest.mark.parametrize("name", ["claude-code.jsonl", "pi.jsonl"])
def test_entries_that_stand_above_themselves_are_read_to_the_end(name: str, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    ours, above = ("uuid", "parentUuid") if name.startswith("claude") else ("id", "parentId")
    for row in rows:
        if above in row:
            row[above] = row[ours]
    read_all(tmp_path, rows)
    two = [row[ours] for row in rows if row.get(above)][:2]
    for row in rows:
        if above in row:
            row[above] = two[row[ours] == two[0]]
    read_all(tmp_path, rows)
