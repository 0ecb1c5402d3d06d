"""The plan of an experiment: all that is decided before the first run, and the order of the runs that follows from it.

A plan is a JSON object; `draft()` has every key. A block is one instance in one repetition: all arms run on it, one
after the other in an order of its own, so that a stop leaves few blocks that cannot be compared.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from .errors import AbError

PRESETS = ("default", "delta", "max")
RUNNERS = ("swebench", "local")  # what mini-swe-agent's own runner makes; a directory here
DATASET = "princeton-nlp/SWE-bench_Verified"
ARM = re.compile(r"[a-z0-9-]+")
NO_MODEL = "PROVIDER/MODEL"  # what a drafted plan has in the model's place
PILOT_INSTANCES = 50
RESAMPLES = 10_000  # what Efron and Tibshirani call ample for the ends of an interval is a tenth of it


class Run(NamedTuple):
    """One conversation of the agent."""

    instance: str
    repetition: int  # from 1
    arm: str


class Block(NamedTuple):
    """One instance in one repetition; its arms in the order in which they run."""

    instance: str
    repetition: int
    arms: tuple[str, ...]

    def runs(self) -> Iterator[Run]:
        """Its runs, in order."""
        return (Run(self.instance, self.repetition, arm) for arm in self.arms)


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be used: money (dollars, as mini-swe-agent counts them), tokens (sent and received, cached ones too),
    steps (calls of the model) and seconds. 0: no limit."""

    money: float = 0.0
    tokens: int = 0
    steps: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Pilot:
    """What two equal arms did. Shares of 1; `spread`: how far apart chance alone puts their costs of a solved task, as
    the standard deviation of the logarithm of the ratio, for one instance. `end`: the last hash of its results."""

    instances: int
    solved: float  # of the control's runs
    differ: float  # of the pairs, those in which one arm alone solved the task
    spread: float
    end: str


@dataclass(frozen=True, slots=True)
class Plan:
    """See README.md for what each means."""

    question: str
    arms: Mapping[str, Mapping[str, Any] | None]  # name -> readcache's settings; None: without it. The first: control
    instances: str  # a file, or the name of a data set
    seed: int
    run_limits: Limits
    whole_limits: Limits
    saving: float = 0.0  # share of the money that an arm is expected to save
    pilot: Pilot | None = None  # None: this is a pilot
    split: str = "test"
    number: int | None = None  # so many instances, drawn with the seed; None: all
    repetitions: int = 1
    alpha: float = 0.025  # one-sided; the intervals have 1 - 2 alpha
    resamples: int = RESAMPLES
    config: Sequence[str] = ("swebench.yaml",)  # for mini-swe-agent, as after its -c
    settings: Mapping[str, Any] = field(default_factory=dict)  # merged over them
    place: str = "swebench"
    attempts: int = 2  # of a run that failed for no reason of the agent's

    @property
    def margin_points(self) -> float:
        """Of how many points the share of solved tasks may be lower: with fewer, what is saved is lost again, since a
        solved task costs what it did before."""
        return 100 * self.saving * self.pilot.solved if self.pilot else 0.0

    @property
    def control(self) -> str:
        """The arm that the others are compared with."""
        return next(iter(self.arms))

    def as_json(self) -> dict[str, Any]:
        """The JSON object that it was, with every key."""
        return {**asdict(self), "config": list(self.config)}


def draft(pilot: Pilot | None = None, saving: float = 0.0, number: int | None = PILOT_INSTANCES) -> Plan:
    """A plan to be edited: instances of SWE-bench Verified once, two equal arms; or four after a `pilot`."""
    presets = {name: {"policy": name} for name in PRESETS}
    return Plan(
        question="What does a solved task cost with readcache, and are as many solved?",
        arms={"plain": None, **({"again": None} if pilot is None else presets)},
        instances=DATASET,
        seed=random.SystemRandom().randrange(1_000_000_000),
        saving=saving,
        pilot=pilot,
        number=number,
        run_limits=Limits(money=3.0, tokens=20_000_000, steps=250, seconds=7200),
        whole_limits=Limits(money=500.0),
        settings={"model": {"model_name": NO_MODEL}},
    )


def read_plan(path: Path) -> Plan:
    """The plan in a file. AbError names what is wrong with it."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AbError(f"{path} cannot be read as a plan: {error}") from error
    if not isinstance(given, dict):
        raise AbError(f"{path} holds no JSON object; `plan {path}` writes one to begin with")
    return plan_of(given, str(path))


def plan_of(given: Mapping[str, Any], where: str = "the plan") -> Plan:
    """A plan from its JSON object."""
    known = {each.name for each in fields(Plan)}
    if unknown := given.keys() - known:
        raise AbError(f"{where}: there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    try:
        limits = {name: Limits(**given.get(name, {})) for name in ("run_limits", "whole_limits")}
        pilot = Pilot(**given["pilot"]) if given.get("pilot") else None
        plan = Plan(**{**given, **limits, "pilot": pilot})
    except TypeError as error:
        raise AbError(f"{where}: {error}") from error
    if wrong := _faults(plan):
        raise AbError(f"{where}: {wrong}")
    return plan


def _faults(plan: Plan) -> str:
    if len(plan.arms) < 2 or plan.arms[plan.control] is not None:
        return 'arms: at least two, and the first one null, as in {"plain": null, "max": {"policy": "max"}}'
    if odd := [name for name in plan.arms if not ARM.fullmatch(name)]:
        return f"arms: {', '.join(odd)}: small letters, digits and hyphens, since directories are named so"
    if plan.place not in RUNNERS:
        return f"place is {plan.place!r}; there are {', '.join(RUNNERS)}"
    if any(arm is not None for arm in plan.arms.values()) and plan.pilot is None:
        return "pilot: run two equal arms first, and let `plan --pilot` write this plan"
    if plan.pilot is not None and not (0 < plan.saving < 1 and 0 < plan.pilot.solved <= 1):
        return "saving is a share between 0 and 1, and a pilot has to solve something"
    if not 0 < plan.alpha < 0.5:
        return "alpha is between 0 and 0.5"
    if min(plan.repetitions, plan.attempts, plan.resamples) < 1:
        return "repetitions, attempts and resamples are at least 1"
    unbounded = [
        name
        for name in ("money", "tokens", "steps")
        if getattr(plan.whole_limits, name) and not getattr(plan.run_limits, name)
    ]
    if unbounded:
        return f"whole_limits has {', '.join(unbounded)}: run_limits needs it too, or nobody knows whether a run fits"
    if plan.whole_limits.seconds:
        return "whole_limits has no seconds: an experiment may be interrupted and go on later"
    return ""


def chosen(plan: Plan, instances: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The instances of the plan, by their ids. AbError where there are not enough, or two have one id."""
    by_id = {str(instance["instance_id"]): instance for instance in instances}
    if len(by_id) < len(instances):
        raise AbError(f"{plan.instances}: two instances have one id")
    ids = sorted(by_id)
    if plan.number is not None:
        if not 0 < plan.number <= len(ids):
            raise AbError(f"{plan.instances} has {len(ids)} instances, and the plan asks for {plan.number}")
        ids = sorted(random.Random(f"instances {plan.seed}").sample(ids, plan.number))
    return [by_id[name] for name in ids]


def schedule(plan: Plan, ids: Sequence[str]) -> list[Block]:
    """All blocks in the order in which they run. The blocks are shuffled within each repetition, so that those that a
    stop leaves undone are left to chance; the arms are shuffled within each block."""
    blocks = []
    for repetition in range(1, plan.repetitions + 1):
        order = sorted(ids)
        random.Random(f"blocks {plan.seed} {repetition}").shuffle(order)
        for name in order:
            arms = list(plan.arms)
            random.Random(f"arms {plan.seed} {repetition} {name}").shuffle(arms)
            blocks.append(Block(name, repetition, tuple(arms)))
    return blocks
