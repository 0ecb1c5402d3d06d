"""The plan: what is wrong with one, and the order of runs that follows from it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ab.errors import AbError
from ab.journal import sha256_of
from ab.plan import Limits, Plan, chosen, draft, plan_of, read_plan, schedule

IDS = [f"repo__name-{number}" for number in range(40)]


def a_plan(seed: int = 1, repetitions: int = 1) -> Plan:
    return replace(draft(), seed=seed, repetitions=repetitions)


def test_a_drafted_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = draft()
    (tmp_path / "plan.json").write_text(json.dumps(plan.as_json()))
    assert read_plan(tmp_path / "plan.json").as_json() == plan.as_json()


def test_the_order_of_the_arms_is_kept_and_counts() -> None:
    given = draft().as_json()
    one, other = {**given, "arms": {"a": None, "b": {}}}, {**given, "arms": {"b": {}, "a": None}}
    assert plan_of(one).control == "a"
    assert sha256_of(one) != sha256_of(other)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"margin": 3}, "there is no margin"),
        ({"arms": {"plain": None}}, "at least two"),
        ({"arms": {"max": {"policy": "max"}, "plain": None}}, "the first one null"),
        ({"place": "moon"}, "there are swebench, local"),
        ({"arms": {"plain": None, "../max": {}}}, "directories are named so"),
        ({"margin_points": 0}, "between 0 and 100"),
        ({"repetitions": 0}, "at least 1"),
        ({"whole_limits": {"tokens": 5}, "run_limits": {"money": 1.0}}, "run_limits needs it too"),
        ({"run_limits": {"cents": 5}}, "cents"),
    ],
)
def test_what_means_nothing_is_told_before_anything_is_run(change: dict[str, object], told: str) -> None:
    with pytest.raises(AbError, match=told):
        plan_of({**draft().as_json(), **change})


def test_a_plan_that_lacks_its_margin_is_refused() -> None:
    given = draft().as_json()
    del given["margin_points"]
    with pytest.raises(AbError, match="margin_points"):
        plan_of(given)


def test_one_seed_gives_one_order_whatever_order_the_instances_came_in() -> None:
    assert schedule(a_plan(), IDS) == schedule(a_plan(), IDS[::-1])
    assert schedule(a_plan(), IDS) != schedule(a_plan(seed=2), IDS)


def test_every_arm_runs_on_every_instance_in_every_repetition() -> None:
    runs = [run for block in schedule(a_plan(repetitions=2), IDS) for run in block.runs()]
    assert len(set(runs)) == len(runs) == len(IDS) * 2 * 4


def test_the_arms_stand_in_each_place_about_as_often() -> None:
    firsts = Counter(block.arms[0] for block in schedule(a_plan(), [str(n) for n in range(400)]))
    assert set(firsts) == set(a_plan().arms)
    assert min(firsts.values()) > 60  # 100 are expected, and 8.7 is a standard deviation


def test_a_stop_leaves_whole_repetitions_first_and_instances_to_chance() -> None:
    blocks = schedule(a_plan(repetitions=2), IDS)
    assert [block.repetition for block in blocks] == [1] * 40 + [2] * 40
    first, second = ([block.instance for block in blocks if block.repetition == each] for each in (1, 2))
    assert first != sorted(first)
    assert first != second


def test_some_instances_are_drawn_by_the_seed_and_named_by_their_ids() -> None:
    instances = [{"instance_id": name} for name in IDS]
    drawn = chosen(replace(a_plan(), number=5), instances)
    assert drawn == chosen(replace(a_plan(), number=5), instances[::-1])
    assert len(drawn) == 5
    with pytest.raises(AbError, match="asks for 41"):
        chosen(replace(a_plan(), number=41), instances)
    with pytest.raises(AbError, match="two instances"):
        chosen(a_plan(), [*instances, instances[0]])


def test_limits_are_read_into_their_own_kind() -> None:
    assert plan_of(draft().as_json()).run_limits == Limits(money=3.0, tokens=20_000_000, steps=250, seconds=7200)
