"""Who solved: real test commands for local instances, the reports of the swebench harness for the others."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ab.errors import AbError
from ab.evaluation import harness_command, judge_by_harness
from ab.experiment import JOURNAL, Experiment, open_experiment
from ab.instances import load_instances
from ab.journal import Journal
from ab.local import is_solved, make_repository
from ab.made import MadePlayer, go_on, made_experiment, small_plan, trajectory
from ab.plan import DATASET
from ab.tiny import tiny_instances


def patched(tmp_path: Path, old: str, new: str) -> str:
    """The patch that an agent would submit."""
    root = make_repository(tiny_instances()[0], tmp_path / "testbed")
    (root / "shop.py").write_text((root / "shop.py").read_text().replace(old, new))
    return subprocess.run(["git", "diff"], cwd=root, capture_output=True, text=True, check=True).stdout


def test_a_patch_that_makes_the_hidden_tests_pass_solves(tmp_path: Path) -> None:
    assert is_solved(tiny_instances()[0], patched(tmp_path, "count * 5 * 25", "count * 5 + 25"))


def test_another_patch_does_not(tmp_path: Path) -> None:
    assert not is_solved(tiny_instances()[0], patched(tmp_path, "count * 5 * 25", "count * 5 + 26"))


@pytest.mark.parametrize("patch", ["", "\n", "no patch at all"])
def test_what_is_no_patch_solves_nothing(patch: str) -> None:
    assert not is_solved(tiny_instances()[0], patch)


def report(folder: Path, name: str, **ids: list[str]) -> Path:
    """As version 5.0 of the harness writes one."""
    kinds = ("resolved_ids", "unresolved_ids", "empty_patch_ids", "error_ids", "infra_failure_ids", "incomplete_ids")
    experiment = open_experiment(folder)
    path = folder / "evaluation" / f"{name}.ab{experiment.lines[0]['hash'][:10]}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**{kind: [] for kind in kinds}, **ids, "schema_version": 2}))
    return path


def judge(folder: Path) -> list[str]:
    with Journal(folder / JOURNAL) as journal:
        return judge_by_harness(Experiment(folder, journal.lines), journal, workers=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = made_experiment(tmp_path / "e", small_plan(place="swebench"), 4)
    go_on(made, MadePlayer(lambda run: trajectory(patch="" if run.instance == "i-3" else f"patch of {run.arm}\n")))
    return made


@pytest.mark.skipif(importlib.util.find_spec("swebench") is not None, reason="it would be run")
def test_without_the_harness_its_commands_are_told(folder: Path) -> None:
    commands = judge(folder)
    assert [("ab-plain-1" in commands[0]), ("ab-max-1" in commands[1])] == [True, True]
    assert "-m swebench.harness.run_evaluation --dataset_name princeton-nlp/SWE-bench_Verified" in commands[0]
    assert "--max_workers 3" in commands[0]
    predictions = json.loads((folder / "evaluation/ab-max-1.predictions.json").read_text())
    assert predictions["i-0"] == {
        "instance_id": "i-0",
        "model_name_or_path": "ab-max-1",
        "model_patch": "patch of max\n",
    }


def test_the_harness_is_given_the_sealed_instances_of_a_file(folder: Path, tmp_path: Path) -> None:
    words = harness_command(open_experiment(folder), Path("p.json"), 1)
    assert words[:3] == [sys.executable, "-m", "swebench.harness.run_evaluation"]
    assert words[words.index("--dataset_name") + 1] == DATASET
    of_file = made_experiment(tmp_path / "f", small_plan(instances="verified.jsonl"))
    assert harness_command(open_experiment(of_file), Path("p.json"), 1)[4] == str(of_file.resolve() / "instances.json")


def test_reports_are_noted_run_by_run_and_once(folder: Path) -> None:
    for name in ("ab-plain-1", "ab-max-1"):
        report(folder, name, resolved_ids=["i-0"], unresolved_ids=["i-1", "i-2"], empty_patch_ids=["i-3"])
    assert judge(folder) == []
    solved = open_experiment(folder).judged()
    assert len(solved) == 8
    assert {run.instance for run, is_so in solved.items() if is_so} == {"i-0"}
    lines = len(open_experiment(folder).lines)
    assert judge(folder) == []
    assert len(open_experiment(folder).lines) == lines


def test_what_the_harness_failed_at_stays_open(folder: Path) -> None:
    for name in ("ab-plain-1", "ab-max-1"):
        report(folder, name, resolved_ids=["i-0"], unresolved_ids=["i-1"], error_ids=["i-2"], infra_failure_ids=["i-1"])
    assert all("does not judge i-1, i-2, i-3" in told for told in judge(folder))
    assert len(open_experiment(folder).judged()) == 2


def test_a_changed_trajectory_is_not_judged(folder: Path) -> None:
    path = next((folder / "runs/i-0").rglob("*.traj.json"))
    path.write_text(path.read_text().replace("patch of", "a better patch of"))
    with pytest.raises(AbError, match="cannot be judged"):
        judge(folder)


# ---------------------------------------------------------------- instances


@pytest.mark.parametrize("name", ["some.json", "some.jsonl"])
def test_instances_are_read_from_a_file(tmp_path: Path, name: str) -> None:
    rows = [{"instance_id": "a", "problem_statement": "b"}] * 2
    whole = json.dumps(rows) if name.endswith("n") else "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / name).write_text(whole)
    assert load_instances(name, "test", tmp_path) == rows


def test_what_is_no_instance_is_told(tmp_path: Path) -> None:
    (tmp_path / "some.json").write_text('[{"instance_id": "a"}]')
    with pytest.raises(AbError, match="lacks problem_statement"):
        load_instances("some.json", "test", tmp_path)
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(AbError, match="no list of objects"):
        load_instances("other.json", "test", tmp_path)
    (tmp_path / "torn.jsonl").write_text('{"a": ')
    with pytest.raises(AbError, match="is no JSON"):
        load_instances("torn.jsonl", "test", tmp_path)
    with pytest.raises(AbError, match="is not there"):
        load_instances("none.parquet", "test", tmp_path)


def test_a_local_instance_brings_its_tests(tmp_path: Path) -> None:
    (tmp_path / "some.json").write_text('[{"instance_id": "a", "problem_statement": "b", "files": {}}]')
    with pytest.raises(AbError, match="lacks test_files, test_command"):
        load_instances("some.json", "test", tmp_path, place="local")
