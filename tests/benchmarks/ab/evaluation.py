"""Which runs solved their task: by the official swebench harness, or for local instances by their own tests."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .errors import AbError
from .experiment import Experiment, run_of, trajectory_path
from .instances import FILES
from .journal import Journal, Line, file_sha256
from .local import is_solved
from .plan import Run
from .trajectory import read_trajectory


class Batch(NamedTuple):
    """The runs of one arm in one repetition, as the harness is given them."""

    arm: str
    repetition: int

    @property
    def name(self) -> str:
        """What its predictions name as their model."""
        return f"ab-{self.arm}-{self.repetition}"


def judge_local(experiment: Experiment, journal: Journal) -> None:
    """Judges every run that is not judged yet."""
    judged = experiment.judged()
    for run, line in experiment.ended().items():
        if run in judged:
            continue
        solved = is_solved(experiment.instances[run.instance], _patch(experiment, line))
        journal.append("judged", {**run._asdict(), "solved": solved, "by": "its own tests"})


def judge_by_harness(experiment: Experiment, journal: Journal, workers: int) -> list[str]:
    """Judges the runs that are in the harness's reports. What is still to be done, as commands and complaints."""
    folder = (experiment.folder / "evaluation").resolve()
    folder.mkdir(exist_ok=True)
    todo = []
    for batch in _batches(experiment):
        if not _missing(experiment, batch):
            continue
        predictions = _write_predictions(experiment, batch, folder)
        command = harness_command(experiment, predictions, workers)
        report = folder / f"{batch.name}.{_run_id(experiment)}.json"
        if not report.exists() and importlib.util.find_spec("swebench"):
            subprocess.run(command, cwd=folder, check=False)
        if report.exists():
            todo += _take(experiment, journal, batch, report)
        else:
            todo.append(f"(cd {shlex.quote(str(folder))} && {shlex.join(command)})")
    return todo


def harness_command(experiment: Experiment, predictions: Path, workers: int) -> list[str]:
    """How the harness is called, in the folder where its report is to be."""
    plan = experiment.plan
    is_file = plan.instances.endswith(FILES)
    words = {
        # Of a file, those that were sealed.
        "dataset_name": str((experiment.folder / "instances.json").resolve()) if is_file else plan.instances,
        "split": plan.split,
        "predictions_path": str(predictions),
        "max_workers": str(workers),
        "run_id": _run_id(experiment),
    }
    given = [word for name, value in words.items() for word in (f"--{name}", value)]
    return [sys.executable, "-m", "swebench.harness.run_evaluation", *given]


def _run_id(experiment: Experiment) -> str:
    return f"ab{experiment.lines[0]['hash'][:10]}"


def _batches(experiment: Experiment) -> Iterator[Batch]:
    for repetition in range(1, experiment.plan.repetitions + 1):
        for arm in experiment.plan.arms:
            yield Batch(arm, repetition)


def _missing(experiment: Experiment, batch: Batch) -> list[Run]:
    unjudged = experiment.ended().keys() - experiment.judged().keys()
    return sorted(run for run in unjudged if (run.arm, run.repetition) == batch)


def _patch(experiment: Experiment, line: Line) -> str:
    path = trajectory_path(experiment.directory(line), run_of(line))
    if file_sha256(path) != line["trajectory"]:
        raise AbError(f"{path} is missing, or was changed since its run: it cannot be judged")
    return str(read_trajectory(path)["info"].get("submission") or "")


def _write_predictions(experiment: Experiment, batch: Batch, folder: Path) -> Path:
    found = {
        run.instance: {
            "instance_id": run.instance,
            "model_name_or_path": batch.name,
            "model_patch": _patch(experiment, line),
        }
        for run, line in experiment.ended().items()
        if (run.arm, run.repetition) == batch
    }
    path = folder / f"{batch.name}.predictions.json"
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return path


def _take(experiment: Experiment, journal: Journal, batch: Batch, report: Path) -> list[str]:
    """Notes what the report says; what it leaves open, as complaints."""
    said: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    solved = set(said["resolved_ids"])
    # Newer harnesses say of which failures the machine was the cause.
    not_solved = {*said["unresolved_ids"], *said["empty_patch_ids"]} - {*said.get("infra_failure_ids", ())}
    open_ = []
    for run in _missing(experiment, batch):
        if run.instance in solved or run.instance in not_solved:
            known = {"by": "swebench", "report": file_sha256(report)}
            journal.append("judged", {**run._asdict(), "solved": run.instance in solved, **known})
        else:
            open_.append(run.instance)
    if not open_:
        return []
    return [f"{report} does not judge {', '.join(open_)}: see the harness's logs, remove the report, evaluate again"]
