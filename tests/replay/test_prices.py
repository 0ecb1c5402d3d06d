"""What models cost: the table, names in transcripts, the user's own prices."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.core.model.errors import UsageError
from readcache.report.replay.bills import ModelPrices, built_in_prices, find_prices, read_prices
from readcache.report.replay.replayer import Choices, simulation_prices
from tests.replay.loaded import DATA, load

OWN = {"input": 3, "read": 0.3, "write": 3.75, "output": 15}


def test_each_row_of_the_table_has_a_date_and_a_source_and_prices_that_can_be() -> None:
    for row in built_in_prices().values():
        assert datetime.date(2026, 1, 1) <= datetime.date.fromisoformat(row.date) <= datetime.date(2026, 12, 31)
        assert row.source
        assert row.read <= 0.1 * row.input <= row.input <= row.write <= (row.write_hour or row.write)
        assert row.input < row.output
        assert (row.above is None) == (row.times_input == 1)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("Claude-Opus-5.5[1m]", "claude-opus-5-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("gpt-6.1-sol", "gpt-6.1-sol"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
        ("claude-opus-5-7", None),  # may cost anything
        ("gpt-5.4-nano", None),
        ("gpt-55", None),
        ("", None),
    ],
)
def test_a_model_is_known_by_its_name_and_not_by_a_similar_one(name: str, row: str | None) -> None:
    found = find_prices(name, built_in_prices())
    assert (found and found.name) == row


def test_the_transcripts_name_their_models() -> None:
    named = {path: load(DATA / path)[0].model for path in ("claude-code.jsonl", "codex.jsonl", "opencode.json")}
    assert named == {
        "claude-code.jsonl": "claude-opus-4-7",
        "codex.jsonl": "gpt-5.4",
        "opencode.json": "gemini-3.1-pro-preview",
    }


def test_what_was_written_to_a_cache_of_an_hour_has_that_price_and_lasts_as_long() -> None:
    recording = load(DATA / "claude-code.jsonl")[0]
    own = Choices().prices(recording)
    assert own is not None
    assert own.write == 6.25
    prices = simulation_prices(own, recording)
    assert (prices.write, prices.seconds) == (10, 3600)


def test_the_users_own_prices_are_read_and_come_first(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"my-model": OWN, "gpt-5.4": {**OWN, "above": 1000, "times_input": 2}}))
    rows = read_prices(str(path))
    assert rows["my-model"] == ModelPrices("my-model", 3, 0.3, 3.75, 15)
    found = find_prices("openai/gpt-5.4", {**built_in_prices(), **rows})
    assert found is not None
    assert found.cost(fresh=1001) == 2 * 1001 * 3


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("[]", "has no prices"),
        ("{", "cannot be read as prices"),
        ('{"m": 3}', "m lacks one of input, read, write, output"),
        (json.dumps({"m": {"input": 1}}), "m lacks one of input, read, write, output"),
        (json.dumps({"m": {**OWN, "output": "5"}}), "m: output is '5': give a number of 0 or more"),
        (json.dumps({"m": {**OWN, "read": -1}}), "m: read is -1: give a number of 0 or more"),
        ('{"m": {"input": NaN, "read": 1, "write": 1, "output": 1}}', "m: input is nan"),
        (json.dumps({"m": {**OWN, "date": 3}}), "m: date is 3: give a text"),
        (json.dumps({"m": {**OWN, "reed": 3}}), "m has an unknown field 'reed' (did you mean read?)"),
        (json.dumps({"m": {**OWN, "input": 0}}), "m: input is 0"),
        (
            json.dumps({"m": OWN, "n": {**OWN, "input": "€3"}}),
            "n: input is '€3': give a number of 0 or more; prices are US",
        ),
        (json.dumps({"m": OWN, "n": {**OWN, "currency": "EUR"}}), "unknown field 'currency'; prices are US dollars"),
    ],
)
def test_prices_that_make_no_sense_are_one_line(
    rows: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "prices.json"
    path.write_text(rows)
    with pytest.raises(UsageError):
        read_prices(str(path))
    assert main(["replay", str(DATA), "--prices", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"readcache: {path}")
    assert said in told
    assert told.count("\n") == 1
