"""The plan: what is wrong with one, and the order of runs that follows from it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from ab.__main__ import main
from ab.errors import AbError
from ab.experiment import open_experiment
from ab.journal import sha256_of
from ab.made import PILOT, MadePlayer, go_on, judge_all, made_experiment, small_plan, trajectory
from ab.paired import needed
from ab.plan import Limits, Plan, Run, chosen, draft, plan_of, read_plan, schedule
from ab.power_table import cost_needed, cost_power

IDS = [f"repo__name-{number}" for number in range(40)]


def a_plan(seed: int = 1, repetitions: int = 1) -> Plan:
    return replace(draft(PILOT, saving=0.05), seed=seed, repetitions=repetitions)


def test_a_drafted_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = a_plan()
    (tmp_path / "plan.json").write_text(json.dumps(plan.as_json()))
    assert read_plan(tmp_path / "plan.json").as_json() == plan.as_json()


def test_the_order_of_the_arms_is_kept_and_counts() -> None:
    given = a_plan().as_json()
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
        ({"pilot": None}, "run two equal arms first"),
        ({"saving": 0}, "saving is a share"),
        ({"saving": 5}, "saving is a share"),
        ({"repetitions": 0}, "at least 1"),
        ({"whole_limits": {"tokens": 5}, "run_limits": {"money": 1.0}}, "run_limits needs it too"),
        ({"run_limits": {"cents": 5}}, "cents"),
    ],
)
def test_what_means_nothing_is_told_before_anything_is_run(change: dict[str, object], told: str) -> None:
    with pytest.raises(AbError, match=told):
        plan_of({**a_plan().as_json(), **change})


def test_the_margin_is_what_the_saving_is_worth() -> None:
    """With 80 % solved and 5 % saved, four points fewer make a solved task cost what it did."""
    plan = a_plan()
    assert plan.margin_points == pytest.approx(4)
    assert (1 - plan.saving) / (0.8 - plan.margin_points / 100) == pytest.approx(1 / 0.8)


def test_a_drafted_plan_is_a_pilot_of_two_equal_arms() -> None:
    plan = plan_of(draft().as_json())
    assert (list(plan.arms.values()), plan.pilot, plan.margin_points) == ([None, None], None, 0)


def pilot(folder: Path, money: Callable[[Run], float], solved: Callable[[Run], bool], count: int = 60) -> Path:
    made_experiment(folder, small_plan(arms={"plain": None, "again": None}, pilot=None), count)
    go_on(folder, MadePlayer(lambda run: trajectory(money=money(run))))
    judge_all(folder, {run: solved(run) for run in open_experiment(folder).ended()})
    return folder


def test_a_pilot_tells_margin_and_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = Random(3)
    folder = pilot(tmp_path / "pilot", lambda _: rng.uniform(0.2, 0.9), lambda _: rng.random() < 0.6)
    assert main(["plan", str(tmp_path / "plan.json"), "--pilot", str(folder), "--saving", "0.1"]) == 0
    plan, told = read_plan(tmp_path / "plan.json"), capsys.readouterr().out
    assert plan.pilot is not None
    assert (plan.pilot.instances, plan.pilot.end) == (60, open_experiment(folder).end)
    assert 0.2 < plan.pilot.differ < 0.8
    assert 0.5 < plan.pilot.spread < 2.5
    assert plan.margin_points == pytest.approx(10 * plan.pilot.solved)
    assert list(plan.arms) == ["plain", "default", "delta", "max"]
    by_cost = cost_needed(plan.pilot.spread, 0.1, plan.alpha)
    assert plan.number == max(by_cost, needed(plan.pilot.differ, plan.margin_points / 100, plan.alpha, 0.8))
    assert f"{by_cost:,} for costs" in told


def test_what_is_not_a_pilot_tells_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = made_experiment(tmp_path / "other", small_plan())
    nothing = pilot(tmp_path / "nothing", lambda _: 0.5, lambda _: False, 5)
    for folder, saving, told in (
        (other, "0.1", "is not a pilot"),
        (nothing, "0.1", "too little"),
        (nothing, "2", "SHARE"),
    ):
        assert main(["plan", str(tmp_path / "plan.json"), "--pilot", str(folder), "--saving", saving]) == 2
        assert told in capsys.readouterr().err


def test_the_number_for_costs_has_the_power_that_was_asked_for() -> None:
    for spread, saving in ((0.5, 0.02), (1.5, 0.1), (1.0, 0.2)):
        count = cost_needed(spread, saving, 0.025)
        assert cost_power(count, spread, saving, 0.025) >= 0.8 > cost_power(count - 2, spread, saving, 0.025)
        rng = Random(5)
        means = [sum(rng.gauss(math.log1p(-saving), spread) for _ in range(50)) / 50 for _ in range(4_000)]
        shown = sum(mean + 1.96 * spread / math.sqrt(50) < 0 for mean in means) / 4_000
        assert cost_power(50, spread, saving, 0.025) == pytest.approx(shown, abs=0.03)


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
