"""An experiment in its folder: sealed before the first run, run, stopped and taken up again.

    plan.json instances.json config.json   what was sealed
    results.jsonl                          the journal, see journal.py
    runs/INSTANCE/REPETITION/ARM-ATTEMPT/  mini-swe-agent's own files of each run
    evaluation/                            predictions and reports of the swebench harness

Lines of the journal: `sealed`; `began`, `ended` and `failed` (of no fault of the agent's) of each attempt at a run;
`lost` (an attempt that a crash ended, found when the experiment goes on); `stopped` with the reason; `finished`;
`code changed`; `judged`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from .budget import Budget, Spent
from .errors import AbError
from .instances import Instance
from .journal import Journal, Line, file_sha256, read_journal, sha256_of
from .plan import Block, Plan, Run, plan_of, schedule
from .trajectory import TOLD, outcome_of, read_trajectory, spent_in
from .versions import code_version

BUDGET = "budget: "  # begins the reasons that no further attempt can mend
JOURNAL = "results.jsonl"
OVERRULE = frozenset(("READCACHE", "READCACHE_POLICY"))  # variables that have a say beside an adapter's own settings


class Player(Protocol):
    """Who carries out one run."""

    def play(self, plan: Plan, run: Run, instance: Instance, directory: Path) -> None:
        """Leaves the trajectory where `trajectory_path` says."""


def trajectory_path(directory: Path, run: Run) -> Path:
    """Where mini-swe-agent's runner for SWE-bench puts it."""
    return directory / run.instance / f"{run.instance}.traj.json"


def seal(folder: Path, plan: Plan, instances: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> Line:
    """Begins an experiment: keeps its plan, instances and mini's configuration, and writes their hashes into the first
    line of the journal. Whoever publishes the hash of that line has registered the plan."""
    if (folder / JOURNAL).exists():
        raise AbError(f"{folder / JOURNAL} is there already: an experiment is sealed once; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    blocks = schedule(plan, [str(instance["instance_id"]) for instance in instances])
    parts = {"plan": plan.as_json(), "instances": list(instances), "config": config}
    for name, value in parts.items():
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    hashes = {name: sha256_of(value) for name, value in parts.items()}
    with Journal(folder / JOURNAL) as journal:
        return journal.append("sealed", {**hashes, "schedule": sha256_of(blocks), "code": code_version()})


class Experiment:
    """A sealed experiment, as its folder and its journal tell it. AbError where they do not agree."""

    def __init__(self, folder: Path, lines: list[Line]) -> None:
        self.folder, self.lines = folder, lines
        if not lines or lines[0]["kind"] != "sealed":
            raise AbError(f"{folder / JOURNAL}: the first line does not seal anything; `seal` makes it")
        parts = {name: self._sealed(name) for name in ("plan", "instances", "config")}
        self.plan: Plan = plan_of(parts["plan"], str(folder / "plan.json"))
        self.instances: dict[str, Instance] = {each["instance_id"]: each for each in parts["instances"]}
        self.config: dict[str, Any] = parts["config"]
        self.blocks: list[Block] = schedule(self.plan, list(self.instances))
        if sha256_of(self.blocks) != lines[0]["schedule"]:
            raise AbError(f"{folder}: this Python orders the runs in another way than the sealed one: {_python(lines)}")

    def _sealed(self, name: str) -> Any:
        path = self.folder / f"{name}.json"
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise AbError(f"{path} cannot be read: {error}") from error
        if sha256_of(value) != self.lines[0][name]:
            raise AbError(f"{path} is not what was sealed; put the sealed one back, or begin another experiment")
        return value

    @property
    def end(self) -> str:
        """The hash of the last line."""
        return str(self.lines[-1]["hash"])

    def ended(self) -> dict[Run, Line]:
        """The runs that are over."""
        return {run_of(line): line for line in self.lines if line["kind"] == "ended"}

    def judged(self) -> dict[Run, bool]:
        """Whether each run that was judged solved its task."""
        return {run_of(line): bool(line["solved"]) for line in self.lines if line["kind"] == "judged"}

    def directory(self, line: Mapping[str, Any]) -> Path:
        """Where the files of an attempt are."""
        name = f"{line['arm']}-{line['attempt']}"
        return self.folder / "runs" / str(line["instance"]) / str(line["repetition"]) / name

    def is_done(self) -> bool:
        """True when no more runs will come: all are over, or the budget is."""
        last = [line["kind"] for line in self.lines if line["kind"] not in ("judged", "torn line dropped")]
        return last[-1] in ("finished", "stopped")

    def verify(self) -> list[str]:
        """What is wrong with the files of the runs; the journal itself was proven by reading it."""
        wrong = []
        for line in self.ended().values():
            path = trajectory_path(self.directory(line), run_of(line))
            if file_sha256(path) != line["trajectory"]:
                wrong.append(f"{path} is missing, or was changed since its run")
        return wrong


def open_experiment(folder: Path) -> Experiment:
    """The experiment in a folder, to be read."""
    return Experiment(folder, read_journal(folder / JOURNAL))


def run_of(line: Mapping[str, Any]) -> Run:
    """The run that a line is about."""
    return Run(line["instance"], line["repetition"], line["arm"])


def _python(lines: list[Line]) -> str:
    return f"Python {lines[0]['code']['python']}"


class Conduct:
    """Carries an experiment on: what is missing of it is run, until the budget or the work is at its end."""

    def __init__(self, folder: Path, journal: Journal, player: Player, code_changed: str = "") -> None:
        if ours := sorted(OVERRULE & os.environ.keys()):
            raise AbError(f"{', '.join(ours)} in the environment would change the arms; unset them")
        self.is_interrupted = False  # no further run begins then
        self.experiment = Experiment(folder, journal.lines)
        self._journal, self._player = journal, player
        self._check_code(code_changed)
        self.attempts = Counter(run_of(line) for line in journal.lines if line["kind"] == "began")
        self._find_lost()
        self.done = set(self.experiment.ended())
        limits = self.experiment.plan.whole_limits, self.experiment.plan.run_limits
        self.budget = Budget(*limits, sum(map(_spent, self._paid_for()), Spent()))

    def _check_code(self, changed: str) -> None:
        now = code_version()
        sealed = [line["code"] for line in self.experiment.lines if line["kind"] in ("sealed", "code changed")][-1]
        if now == sealed:
            return
        if not changed:
            apart = ", ".join(name for name in now if now[name] != sealed[name])
            raise AbError(f"not the sealed code ({apart}): go back to it, or say why in --code-changed REASON")
        self._journal.append("code changed", {"reason": changed, "code": now})

    def _paid_for(self) -> Iterable[Line]:
        return (line for line in self.experiment.lines if line["kind"] in ("ended", "failed", "lost"))

    def _find_lost(self) -> None:
        """Attempts that have no end were under way at a crash. mini-swe-agent saves its trajectory after each step, so
        that all but one call of the model is known of them; where it cannot be read, all that it was allowed counts."""
        over = {(run_of(line), line["attempt"]) for line in self._paid_for()}
        for line in [each for each in self.experiment.lines if each["kind"] == "began"]:
            if (run_of(line), line["attempt"]) not in over:
                path = trajectory_path(self.experiment.directory(line), run_of(line))
                found, most = read_trajectory(path), self.experiment.plan.run_limits
                spent = spent_in(found) if found else Spent(most.money, most.tokens, most.steps)
                fields = {**run_of(line)._asdict(), "attempt": line["attempt"], "known": bool(found)}
                self._journal.append("lost", {**fields, **asdict(spent)})

    def block(self, block: Block) -> str:
        """Runs what is missing of a block. Why it cannot be finished, with BUDGET in front for the budget; "" when it
        is finished."""
        missing = [run for run in block.runs() if run not in self.done]
        if over := self.budget.set_aside(len(missing)):
            return BUDGET + over
        for number, run in enumerate(missing):
            if self.is_interrupted:
                self.budget.release(len(missing) - number)
                return "interrupted"
            if trouble := self._until_it_ends(run):
                self.budget.release(len(missing) - number - 1)
                return trouble
        return ""

    def _until_it_ends(self, run: Run) -> str:
        """One run, again if it fails. One run is set aside for when it begins, and none when it is over."""
        for attempt in range(1, self.experiment.plan.attempts + 1):
            if attempt > 1 and (over := self.budget.set_aside(1)):
                return BUDGET + over
            line = self._attempt(run)
            self.budget.settle(_spent(line))
            if line["kind"] == "ended":
                self.done.add(run)
                return ""
        return f"{run.instance}, {run.arm}: {line['failed']}, {self.experiment.plan.attempts} times"

    def _attempt(self, run: Run) -> Line:
        plan = self.experiment.plan
        self.attempts[run] += 1
        known = {**run._asdict(), "attempt": self.attempts[run]}
        directory = self.experiment.directory(known)
        directory.mkdir(parents=True, exist_ok=True)
        self._journal.append("began", known)
        began = time.monotonic()
        trouble = {}
        try:
            self._player.play(plan, run, self.experiment.instances[run.instance], directory)
        except Exception as error:
            trouble = {"failed": f"{type(error).__name__}: {error}"[:TOLD]}
        path = trajectory_path(directory, run)
        outcome = outcome_of(read_trajectory(path), has_readcache=plan.arms[run.arm] is not None) | trouble
        used = {"seconds": round(time.monotonic() - began, 3), "trajectory": file_sha256(path)}
        return self._journal.append("failed" if outcome["failed"] else "ended", {**known, **outcome, **used})

    def note(self, kind: str, reason: str) -> None:
        """The end of this stretch of work: "stopped" or "finished"."""
        self._journal.append(kind, {"reason": reason, "spent": asdict(self.budget.spent)})


def _spent(line: Mapping[str, Any]) -> Spent:
    tokens = line["tokens"]
    return Spent(line["money"], tokens if isinstance(tokens, int) else sum(tokens.values()), line["steps"])
