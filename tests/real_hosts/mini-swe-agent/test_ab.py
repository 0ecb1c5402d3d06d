"""The A/B kit with the real mini-swe-agent: the dry run, and a real run up to the model, which is a scripted API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_mini_swe_agent import COMMANDS, SUBMIT, docker, make_repo, play

from tests.real_hosts.chat_api import ScriptedModel

TOP = Path(__file__).resolve().parents[3]
ARMS = {"plain": None, "default": {"policy": "default"}, "max": {"policy": "max"}}


def ab(*words: str | Path, status: int = 0, **environment: str) -> str:
    """What a command of the kit prints."""
    command = [sys.executable, "-m", "tests.benchmarks.ab", *map(str, words)]
    kept = {name: value for name, value in os.environ.items() if name not in ("READCACHE", "READCACHE_POLICY")}
    done = subprocess.run(command, cwd=TOP, env={**kept, **environment}, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout or done.stderr


def test_the_dry_run_goes_through_every_step(tmp_path: Path) -> None:
    told = ab("dry-run", tmp_path)
    assert max(map(len, told[told.index("$ analyse") :].splitlines()[2:])) <= 100
    lines = [json.loads(line) for line in (tmp_path / "experiment/results.jsonl").read_text().splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds[0] == "sealed"
    assert kinds.count("lost") == 1, "the process was killed in a run"
    assert kinds.count("ended") == kinds.count("judged") == 20, "five blocks; the budget ends before the sixth"
    assert kinds.count("stopped") == 1
    found = json.loads(ab("analyse", tmp_path / "experiment", "--json"))
    assert found["complete"] == 5
    plain, *others = found["arms"]
    assert plain["totals"]["solved"] == 4, "one task cannot be solved by what is said of it"
    for arm in others:
        assert arm["comparison"]["pairs"] == {"both": 3, "only_arm": 0, "only_control": 1, "neither": 1}, "in haste"
        assert arm["readcache"]["wrong"] == []
        assert arm["readcache"]["markers"] > 20
        assert arm["readcache"]["insisted"] == 5
        assert arm["ratios"]["tokens"]["value"] < 0.95
        assert arm["ratios"]["steps"]["value"] == 1.0
    ab("verify", tmp_path / "experiment", "--end", found["end"])
    trajectory = next(tmp_path.rglob("*.traj.json"))
    trajectory.write_text(trajectory.read_text().replace("item_5", "item_6"))
    assert "was changed since its run" in ab("verify", tmp_path / "experiment", status=1)


def test_the_dry_run_prints_json_alone(tmp_path: Path) -> None:
    assert json.loads(ab("dry-run", tmp_path, "--json"))["complete"] == 5


def planned(tmp_path: Path, url: str, **more: Any) -> Path:
    """A plan with two instances of SWE-bench, whose containers are a directory of this machine."""
    repo = make_repo(tmp_path / "testbed")
    program = docker(tmp_path / "docker")
    rows = [{"instance_id": f"a__b-{n}", "problem_statement": "Rename it."} for n in (1, 2)]
    (tmp_path / "verified.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kwargs = {"api_base": url, "parallel_tool_calls": None, "seed": 5}
    environment = {"cwd": str(repo), "executable": str(program), "env": {"BASH_ENV": "/dev/null"}}
    plan = {
        "question": "Does it go through?",
        "arms": ARMS,
        "instances": "verified.jsonl",
        "seed": 3,
        "saving": 0.05,
        "pilot": {"instances": 50, "solved": 0.8, "differ": 0.1, "spread": 1.0, "end": "none"},
        "run_limits": {"steps": 30, "tokens": 100_000},
        "whole_limits": {},
        "settings": {"model": {"model_name": "openai/fake", "model_kwargs": kwargs}, "environment": environment},
        "repetitions": 2,
        **more,
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    return tmp_path / "plan.json"


def sealed(tmp_path: Path, model: ScriptedModel, **more: Any) -> Path:
    """An experiment with that plan."""
    ab("seal", planned(tmp_path, model.url, **more), tmp_path / "e")
    return tmp_path / "e"


def trajectories(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.rglob("*.traj.json"))]


def test_a_real_run_lacks_nothing_but_the_key(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        folder = sealed(tmp_path, model)
        for _ in range(12):
            play(model, *COMMANDS[:2], (SUBMIT.replace("patch.txt", "shop.py"),))
        told = ab("run", folder)
    assert told.splitlines()[-1] == "all runs are over"
    assert "swebench/sweb.eval.x86_64.a_1776_b-" in (tmp_path / "docker.ran").read_text()
    assert len(trajectories(folder)) == 12
    seeds = {each["info"]["config"]["model"]["model_kwargs"]["seed"] for each in trajectories(folder)}
    assert seeds == {5, 6}, "the seed of the first repetition, and the next one"
    assert "swebench.harness.run_evaluation" in ab("evaluate", folder, status=3)
    assert "INTERIM" in ab("analyse", folder, "--interim")
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    ended = [line for line in lines if line["kind"] == "ended"]
    assert {line["tokens"]["output"] for line in ended} == {30}
    assert {line["readcache"]["markers"] > 0 for line in ended if line["arm"] != "plain"} == {True}
    assert not [line for line in ended if line["arm"] == "plain" and "readcache" in line]
    assert not [wrong for line in ended if line["arm"] != "plain" for wrong in line["readcache"]["wrong"]]


def test_the_limit_of_tokens_ends_a_run_of_every_arm(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        folder = sealed(tmp_path, model, run_limits={"tokens": 200}, repetitions=1)
        for _ in range(6):
            play(model, ("cat shop.py",), ("cat shop.py",))
        ab("run", folder)
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    ended = [line for line in lines if line["kind"] == "ended"]
    assert len(ended) == 6
    assert {line["exit_status"] for line in ended} == {"LimitsExceeded"}
    assert {sum(line["tokens"].values()) for line in ended} == {220}


def test_a_policy_that_means_nothing_is_not_sealed(tmp_path: Path) -> None:
    plan = planned(tmp_path, "", arms={"plain": None, "maxi": {"policy": "maxi"}})
    assert "the arm maxi: " in ab("seal", plan, tmp_path / "e", status=2)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": {}}, "names no model"),
        ({"model": {"model_name": "m", "readcache": {"policy": "max"}}}, "in every arm"),
    ],
)
def test_settings_that_would_spoil_the_comparison_are_not_sealed(
    tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    plan = planned(tmp_path, "", settings=settings)
    assert told in ab("seal", plan, tmp_path / "e", status=2)
