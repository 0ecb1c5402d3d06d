"""The journal: what was changed, taken out, put in or moved is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ab.errors import AbError
from ab.journal import NOTHING, Journal, read_journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "results.jsonl") as journal:
        for number in range(5):
            journal.append("ended", {"number": number, "text": "é → 漢"})
    return tmp_path / "results.jsonl"


def raw(path: Path) -> list[str]:
    return path.read_text().splitlines()


def rewrite(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines))


def test_each_line_has_the_hash_of_the_one_before_it(path: Path) -> None:
    lines = read_journal(path)
    assert [line["previous"] for line in lines] == [NOTHING, *(line["hash"] for line in lines[:-1])]


def test_a_changed_line_is_found(path: Path) -> None:
    rewrite(path, [line.replace('"number":2', '"number":9') for line in raw(path)])
    with pytest.raises(AbError, match=r"results\.jsonl:3: this line was changed"):
        read_journal(path)


def test_a_changed_line_with_a_hash_to_match_is_found_at_the_next(path: Path) -> None:
    from ab.journal import canonical, sha256_of

    lines = raw(path)
    forged = json.loads(lines[2]) | {"number": 9}
    del forged["hash"]
    rewrite(path, [*lines[:2], canonical({**forged, "hash": sha256_of(forged)}), *lines[3:]])
    with pytest.raises(AbError, match=r":4: the line before it is missing, or was changed"):
        read_journal(path)


@pytest.mark.parametrize("number", range(4))
def test_a_missing_line_is_found(path: Path, number: int) -> None:
    lines = raw(path)
    rewrite(path, lines[:number] + lines[number + 1 :])
    with pytest.raises(AbError, match=f":{number + 1}: the line before it is missing"):
        read_journal(path)


def test_lines_that_changed_places_are_found(path: Path) -> None:
    lines = raw(path)
    rewrite(path, [*lines[:2], lines[3], lines[2], lines[4]])
    with pytest.raises(AbError, match=":3: the line before it"):
        read_journal(path)


def test_what_is_no_line_is_told_with_its_number(path: Path) -> None:
    rewrite(path, [*raw(path), "[]"])
    with pytest.raises(AbError, match=":6: this is no line of a journal"):
        read_journal(path)


def test_what_a_crash_left_of_a_line_is_dropped_and_told(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"kind":"end')
    assert len(read_journal(path)) == 5
    with Journal(path) as journal:
        journal.append("ended", {})
    assert [line["kind"] for line in read_journal(path)][5:] == ["torn line dropped", "ended"]


def test_it_goes_on_where_it_ended(path: Path) -> None:
    with Journal(path) as journal:
        journal.append("ended", {"number": 5})
    assert [line["number"] for line in read_journal(path)] == list(range(6))


def test_two_cannot_write_it_at_once(path: Path) -> None:
    with Journal(path), pytest.raises(AbError, match="written by another process"):
        Journal(path)


def test_one_that_is_not_there_is_told_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(AbError, match="`seal` makes it"):
        read_journal(tmp_path / "none.jsonl")
