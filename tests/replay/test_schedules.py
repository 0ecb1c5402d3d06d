"""The advice about schedules weighs money and what the agent needed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.report.replay.conversations import StrategyCounts
from readcache.report.replay.schedules import advice, best_schedule
from tests.replay.test_turns import AGAIN, READ, rollout


def schedules(**bills: tuple[int, int]) -> StrategyCounts:
    """Schedules by name, each with its bill and its missed needs of 100. `compact_160k` is `compact:160k`."""
    rows: StrategyCounts = {("none", ""): Counter(bill=2000, needs=100, sessions=3)}
    for name, (bill, missed) in {"recorded": (1000, 9), **bills}.items():
        counts = Counter(bill=bill, missed=missed, needs=100, sessions=3, shortened=1)
        rows[name.replace("_", ":"), ""] = counts
        rows[name.replace("_", ":"), "max"] = counts
    return rows


def test_the_cheapest_that_misses_few_needs_is_the_best_and_not_the_cheapest() -> None:
    tried = schedules(compact_160k=(500, 6), clear_160k_60k=(900, 5), clear_200k_80k=(950, 1))
    assert best_schedule(tried) == "clear:160k:60k"
    (said,) = advice(tried, ["max"], "claude-code")
    assert said.startswith(
        "3 conversations: of the 4 schedules tried, clear:160k:60k is the cheapest that misses at most"
    )
    assert "it would have cost 10.0 % less, with 5.0 % of what edits needed gone" in said


def test_where_nothing_is_cheaper_the_sentence_says_how_many_were_tried() -> None:
    tried = schedules(compact_160k=(1001, 0), clear_160k_60k=(1000, 0), mask_10=(1500, 50))
    assert best_schedule(tried) == "recorded"
    assert [*advice(tried, ["max"], "")] == [
        "3 conversations: of the 4 schedules tried, what you do now is the cheapest."
    ]


def test_what_is_cheaper_and_takes_too_much_is_named_with_what_it_takes() -> None:
    (said,) = advice(schedules(compact_160k=(780, 9)), ["max"], "")
    assert said == (
        "3 conversations: of the 2 schedules tried, what you do now is the best. compact:160k is cheaper and takes too "
        "much: it would have cost 22.0 % less, with 9.0 % of what edits needed gone."
    )


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("claude-code", "export CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000"),
        ("codex", "model_auto_compact_token_limit = 200000"),
        ("messages", "Compactor(session, summarize, trigger_tokens=200_000)"),
    ],
)
def test_a_compaction_is_switched_on_by_the_hosts_own_setting(host: str, line: str) -> None:
    (said,) = advice(schedules(compact_200k=(700, 4)), ["max"], host)
    assert said.endswith(f":\n  {line}")


def test_long_conversations_are_those_by_the_providers_count_and_have_their_share_of_the_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, tokens in (("a", 159_000), ("b", 161_000), ("c", 30_000)):
        rows = rollout([READ], [AGAIN], tokens=tokens)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text.replace('"c0.0"', f'"first of {name}"'))
    assert main(["replay", "--json", "--policy", "max", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    counts = found["counts"]
    assert (counts["long"], counts["sessions"]) == (1, 3)
    part = 100 * counts["long_bill"] / counts["bill"]
    said = f"1 of 3 conversations reached more than 160,000 tokens: {part:.1f} % of the bill."
    assert found["verdict"][1] == said
    assert found["conversation"]["none"]["sessions"] == 1
