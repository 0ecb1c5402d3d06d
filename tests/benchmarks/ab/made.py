"""What tests of the kit make: experiments whose runs a player plays that needs no mini-swe-agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .crew import run_blocks
from .experiment import JOURNAL, Conduct, seal, trajectory_path
from .instances import Instance
from .journal import Journal
from .plan import Limits, Pilot, Plan, Run, draft

Trajectory = dict[str, Any]
PILOT = Pilot(instances=50, solved=0.8, differ=0.1, spread=1.0, end="0" * 64)  # a margin of four points


def small_plan(**more: Any) -> Plan:
    """Two arms, a dollar and ten steps a run."""
    few = {"arms": {"plain": None, "max": {"policy": "max"}}, "run_limits": Limits(money=1.0, steps=10)}
    return replace(
        draft(PILOT, saving=0.05, number=None),
        **{"seed": 7, "whole_limits": Limits(), "resamples": 200, "place": "local", **few, **more},
    )


def instances(count: int) -> list[Instance]:
    """So many, with nothing in them but what every instance has."""
    return [{"instance_id": f"i-{number}", "problem_statement": "Do it."} for number in range(count)]


def trajectory(status: str = "Submitted", *, money: float = 0.5, steps: int = 4, patch: str = "a patch") -> Trajectory:
    """As mini-swe-agent saves one, as far as it is read."""
    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens": 10}
    answer = {"role": "assistant", "content": "", "extra": {"actions": [], "response": {"usage": usage}}}
    stats = {"instance_cost": money, "api_calls": steps}
    info = {"exit_status": status, "submission": patch, "model_stats": stats, "readcache": {"bounces": 1}}
    return {"info": info, "messages": [answer] * steps}


class MadePlayer:
    """Writes the trajectory that `make` gives for a run, and remembers the runs. What `make` raises, it raises."""

    def __init__(self, make: Callable[[Run], Trajectory] = lambda _: trajectory()) -> None:
        self._make = make
        self.played: list[Run] = []

    def play(self, plan: Plan, run: Run, instance: Instance, directory: Path) -> None:
        """See `Player`."""
        assert plan.arms
        assert instance["instance_id"] == run.instance
        self.played.append(run)
        path = trajectory_path(directory, run)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self._make(run)), encoding="utf-8")


def made_experiment(folder: Path, plan: Plan, count: int = 4) -> Path:
    """A sealed one, in the folder."""
    seal(folder, plan, instances(count), {"model": {"model_name": "none"}})
    return folder


def go_on(folder: Path, player: MadePlayer, workers: int = 1, code_changed: str = "") -> str:
    """As `run` does."""
    with Journal(folder / JOURNAL) as journal:
        return run_blocks(Conduct(folder, journal, player, code_changed), workers, lambda _: None)


def judge_all(folder: Path, solved: Mapping[Run, bool]) -> None:
    """Notes whether each run solved its task."""
    with Journal(folder / JOURNAL) as journal:
        for run, is_so in solved.items():
            journal.append("judged", {**run._asdict(), "solved": is_so, "by": "a test"})
