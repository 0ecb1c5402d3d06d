"""The analysis: what counts, what is compared, what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ab.__main__ import main
from ab.analysis import CHEAPER, NOT_INFERIOR, NOT_SHOWN, Analysis, analyse
from ab.experiment import open_experiment
from ab.made import MadePlayer, go_on, judge_all, made_experiment, small_plan, trajectory
from ab.paired import Pairs
from ab.plan import Limits, Plan, Run
from ab.table import table

ARMS: dict[str, Any] = {"plain": None, "default": {"policy": "default"}, "max": {"policy": "max"}}
PRICES = {"plain": 0.5, "default": 0.4, "max": 0.25}


def experiment(folder: Path, solved: Callable[[Run], bool], count: int = 40, plan: Plan | None = None) -> Path:
    """Run and judged; each arm has its price."""
    made_experiment(folder, plan or small_plan(arms=ARMS, saving=0.25), count)
    go_on(folder, MadePlayer(lambda run: trajectory(money=PRICES[run.arm])))
    judge_all(folder, {run: solved(run) for run in open_experiment(folder).ended()})
    return folder


def analysed(folder: Path) -> Analysis:
    found = open_experiment(folder)
    return analyse(found.plan, found.blocks, found.lines)


def number(run: Run) -> int:
    return int(run.instance[2:])


def test_arms_that_solve_the_same_many_tasks_are_not_inferior(tmp_path: Path) -> None:
    found = analysed(experiment(tmp_path / "e", lambda run: number(run) % 3 > 0, count=30))
    plain, *others = found.arms
    assert plain.comparison is None
    for arm in others:
        assert arm.comparison is not None
        assert arm.comparison.verdict == NOT_INFERIOR
        assert arm.comparison.pairs == Pairs(20, 0, 0, 10)
        assert arm.cheaper == CHEAPER


def test_with_few_instances_nothing_is_shown(tmp_path: Path) -> None:
    found = analysed(experiment(tmp_path / "e", lambda _: True, count=10))
    assert found.arms[1].comparison is not None
    assert found.arms[1].comparison.verdict == NOT_SHOWN


def test_after_an_arm_that_fails_no_further_one_is_tested(tmp_path: Path) -> None:
    found = analysed(experiment(tmp_path / "e", lambda run: run.arm != "default" or number(run) % 4 > 0, count=32))
    first, second = (arm.comparison for arm in found.arms[1:])
    assert first is not None
    assert second is not None
    assert (first.verdict, second.verdict) == (NOT_SHOWN, "not tested: default failed")
    assert first.difference == pytest.approx(-0.25)


def test_after_an_arm_that_is_not_shown_to_be_cheaper_no_further_one_is_tested(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(arms=ARMS), 20)
    prices = {**PRICES, "default": 0.5}
    go_on(folder, MadePlayer(lambda run: trajectory(money=prices[run.arm])))
    judge_all(folder, dict.fromkeys(open_experiment(folder).ended(), True))
    assert [arm.cheaper for arm in analysed(folder).arms] == ["", NOT_SHOWN, "not tested: default failed"]


def test_the_cost_of_a_solved_task_is_all_the_money_over_the_solved(tmp_path: Path) -> None:
    found = analysed(experiment(tmp_path / "e", lambda run: number(run) % 2 > 0))
    for arm in found.arms:
        price = PRICES[arm.name]
        assert arm.per_solved.value == pytest.approx(2 * price)
    ratio = found.arms[2].ratios["per solved"]
    assert ratio.value == pytest.approx(0.5)
    assert ratio.interval == pytest.approx((0.5, 0.5)), "the same runs solve in both arms"
    assert found.arms[1].ratios["steps"].value == 1.0
    assert found.arms[2].tokens == {"fresh": 6400, "written": 0, "cached": 9600, "output": 1600}
    assert found.arms[2].readcache["bounces"] == 40
    assert found.arms[0].readcache == {}


def test_where_nothing_was_solved_a_solved_task_has_no_price(tmp_path: Path) -> None:
    folder = experiment(tmp_path / "e", lambda _: False)
    assert analysed(folder).arms[0].per_solved == (None, None)
    assert "-" in "".join(table(open_experiment(folder), analysed(folder)))


def test_blocks_that_the_budget_cut_off_or_nobody_judged_do_not_count(tmp_path: Path) -> None:
    plan = small_plan(arms=ARMS, whole_limits=Limits(money=14.0))
    folder = made_experiment(tmp_path / "e", plan, 40)
    go_on(folder, MadePlayer(lambda run: trajectory(money=PRICES[run.arm])))
    runs = list(open_experiment(folder).ended())
    judge_all(folder, dict.fromkeys(runs[:-1], True))
    found = analysed(folder)
    assert (found.blocks, found.complete) == (40, len(runs) // 3 - 1)
    assert {arm.runs for arm in found.arms} == {found.complete}


def test_repetitions_of_one_instance_are_not_taken_for_other_instances(tmp_path: Path) -> None:
    plan = small_plan(arms=ARMS, repetitions=3)
    folder = experiment(tmp_path / "e", lambda run: run.arm == "plain" or number(run) % 5 > 0, 10, plan)
    found = analysed(folder)
    assert (found.complete, found.instances) == (30, 10)
    beside = found.arms[1].comparison
    assert beside is not None
    assert beside.design_effect == pytest.approx(3.0)
    assert any(line.startswith("design effect") for line in table(open_experiment(folder), found))


def test_the_table_fits_a_hundred_columns(tmp_path: Path) -> None:
    plan = small_plan(arms=ARMS, whole_limits=Limits(money=1000.0, tokens=10**9), run_limits=Limits(1.0, 10**6, 9))
    folder = experiment(tmp_path / "e", lambda run: (number(run) + len(run.arm)) % 3 > 0, 12, plan)
    lines = list(table(open_experiment(folder), analysed(folder)))
    assert max(map(len, lines)) <= 100
    assert any("wrong omissions" in line for line in lines)


def test_the_command_says_nothing_before_the_end_unless_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made_experiment(tmp_path / "e", small_plan())
    assert main(["analyse", str(folder)]) == 2
    assert "runs are missing" in capsys.readouterr().err
    go_on(folder, MadePlayer())
    assert main(["analyse", str(folder)]) == 2
    assert "8 runs are not judged" in capsys.readouterr().err
    assert main(["analyse", str(folder), "--interim"]) == 0
    assert "its verdicts count for nothing" in capsys.readouterr().out


def test_the_numbers_are_there_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = experiment(tmp_path / "e", lambda run: number(run) > 3)
    assert main(["analyse", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "finished"
    assert found["arms"][2]["ratios"]["money"]["value"] == pytest.approx(0.5)
    assert found["arms"][1]["comparison"]["pairs"] == {"both": 36, "only_arm": 0, "only_control": 0, "neither": 4}


def test_a_wrong_omission_is_shouted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(_run: Run) -> dict[str, Any]:
        made = trajectory()
        made["messages"] = [{"role": "tool", "extra": {"raw_output": "x", "full_output": "y\nz"}}]
        return made

    folder = made_experiment(tmp_path / "e", small_plan(), 2)
    go_on(folder, MadePlayer(wrong))
    judge_all(folder, dict.fromkeys(open_experiment(folder).ended(), True))
    assert main(["analyse", str(folder)]) == 1
    assert capsys.readouterr().out.count("WRONG, max") == 2


def test_the_end_that_was_published_must_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = experiment(tmp_path / "e", lambda _: True, 4)
    end = open_experiment(folder).end
    assert main(["verify", str(folder), "--end", end]) == 0
    path = folder / "results.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert main(["verify", str(folder)]) == 0, "a chain alone cannot tell that its end is missing"
    assert main(["verify", str(folder), "--end", end]) == 1
    assert "lines are missing at the end" in capsys.readouterr().out
