"""What the results say: solved tasks compared pair by pair, costs per solved task, what readcache did.

Only blocks count in which every arm's run is over and judged. The first end point is the cost of a solved task, the
second the share of solved tasks; a claim needs both, so that each has the full level. In each the arms are tested one
after the other in the plan's order, and no further than the first that fails: so the level holds for all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Any, NamedTuple

from .bootstrap import Interval, intervals, resampled
from .journal import Line
from .paired import Pairs, count_pairs, design_effect, interval, is_not_inferior
from .plan import Block, Pilot, Plan, Run
from .trajectory import COUNTED, KINDS

COLUMNS = ("solved", "money", "tokens", "steps")  # of the bootstrap, for each arm
NOT_INFERIOR, CHEAPER, NOT_SHOWN = "not inferior", "cheaper", "not shown"
Measure = Callable[[Sequence[float]], "float | None"]


class Estimate(NamedTuple):
    """A number with its interval. None: it has no value, or its interval no end."""

    value: float | None
    interval: Interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """Solved tasks of an arm beside those of the control; differences as shares."""

    pairs: Pairs
    design_effect: float
    difference: float
    interval: tuple[float, float]
    verdict: str


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm over the complete blocks. `ratios`: to the control, of "money", "per solved", "tokens" and "steps"; none
    for the control itself, which has no `comparison` and no verdict `cheaper` either. `readcache`: its counters; empty
    without it."""

    name: str
    runs: int
    totals: Mapping[str, float]  # of COLUMNS
    tokens: Mapping[str, int]  # by kind
    exits: Mapping[str, int]  # exit status -> runs
    failed_attempts: int  # in all blocks
    per_solved: Estimate
    ratios: Mapping[str, Estimate]
    cheaper: str
    comparison: Comparison | None
    readcache: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Analysis:
    """`blocks`, `complete`: of the plan, and those that count."""

    blocks: int
    complete: int
    instances: int
    arms: Sequence[ArmResult]


class _Data:
    """The complete blocks of a journal."""

    def __init__(self, plan: Plan, blocks: Sequence[Block], lines: Sequence[Line]) -> None:
        self.ended = {_run(line): line for line in lines if line["kind"] == "ended"}
        self.solved = {_run(line): bool(line["solved"]) for line in lines if line["kind"] == "judged"}
        self.complete = [block for block in blocks if all(self._is_known(run) for run in block.runs())]
        self.repetitions: dict[str, list[int]] = {}
        for block in self.complete:
            self.repetitions.setdefault(block.instance, []).append(block.repetition)
        rows = [self._row(plan, name) for name in self.repetitions]
        self.totals = _sums(rows) if rows else [0.0] * len(COLUMNS) * len(plan.arms)
        self.resamples = resampled(rows, plan.resamples, plan.seed) if rows else []

    def _is_known(self, run: Run) -> bool:
        return run in self.ended and run in self.solved

    def runs(self, arm: str) -> list[Line]:
        """The lines of an arm's runs."""
        return [self.ended[run] for block in self.complete for run in block.runs() if run.arm == arm]

    def clusters(self, control: str, arm: str) -> list[list[tuple[bool, bool]]]:
        """(control solved, arm solved) of each instance's repetitions."""
        return [
            [(self.solved[Run(name, each, control)], self.solved[Run(name, each, arm)]) for each in repetitions]
            for name, repetitions in self.repetitions.items()
        ]

    def _row(self, plan: Plan, name: str) -> list[float]:
        """Of one instance, for each arm, the sums of COLUMNS over its repetitions."""
        row: list[float] = []
        for arm in plan.arms:
            runs = (Run(name, repetition, arm) for repetition in self.repetitions[name])
            row += _sums([_amounts(self.ended[run], self.solved[run]) for run in runs])
        return row

    def estimates(self, measures: Mapping[str, Measure], alpha: float) -> dict[str, Estimate]:
        """Each measure with its interval."""
        found = intervals(self.resamples, measures, alpha)
        return {name: Estimate(measure(self.totals), found[name]) for name, measure in measures.items()}


def analyse(plan: Plan, blocks: Sequence[Block], lines: Sequence[Line]) -> Analysis:
    """The analysis of a journal's lines."""
    data, arms, first_failed, first_dear = _Data(plan, blocks, lines), [], "", ""
    failed = Counter(line["arm"] for line in lines if line["kind"] == "failed")
    for at, arm in enumerate(plan.arms):
        comparison = _compare(plan, data, arm, first_failed) if at and data.complete else None
        if comparison and comparison.verdict == NOT_SHOWN:
            first_failed = arm
        mine = data.runs(arm)
        estimates = data.estimates(_measures(at), plan.alpha)
        cheaper = _is_cheaper(estimates["per solved"], first_dear) if at and data.complete else ""
        if cheaper == NOT_SHOWN:
            first_dear = arm
        arms.append(
            ArmResult(
                name=arm,
                runs=len(mine),
                totals=dict(zip(COLUMNS, data.totals[at * len(COLUMNS) :], strict=False)),
                tokens={kind: sum(line["tokens"][kind] for line in mine) for kind in KINDS},
                exits=dict(Counter(line["exit_status"] for line in mine)),
                failed_attempts=failed[arm],
                per_solved=estimates.pop("each"),
                ratios=estimates if at else {},
                cheaper=cheaper,
                comparison=comparison,
                readcache=_readcache(mine, [line for line in lines if line.get("arm") == arm]),
            )
        )
    return Analysis(len(blocks), len(data.complete), len(data.repetitions), arms)


def pilot_of(plan: Plan, blocks: Sequence[Block], lines: Sequence[Line], end: str) -> Pilot | None:
    """What the first two arms of a pilot tell of chance; None where nothing was solved, or too little to tell."""
    data, (control, arm) = _Data(plan, blocks, lines), list(plan.arms)[:2]
    if not data.complete:
        return None
    pairs, ratio = count_pairs(data.clusters(control, arm)), _measures(1)["per solved"]
    found = [value for sums in data.resamples if (value := ratio(sums))]
    solved, count = (pairs.both + pairs.only_control) / pairs.count, len(data.repetitions)
    if not solved or len(found) < (1 - plan.alpha) * len(data.resamples):
        return None
    spread = stdev(map(math.log, found)) * math.sqrt(count)
    return Pilot(count, solved, (pairs.only_arm + pairs.only_control) / pairs.count, spread, end)


def _is_cheaper(ratio: Estimate, first_dear: str) -> str:
    if first_dear:
        return f"not tested: {first_dear} failed"
    return CHEAPER if ratio.interval and ratio.interval[1] < 1 else NOT_SHOWN


def _run(line: Mapping[str, Any]) -> Run:
    return Run(line["instance"], line["repetition"], line["arm"])


def _sums(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _amounts(line: Line, solved: bool) -> tuple[float, ...]:
    return float(solved), line["money"], sum(line["tokens"].values()), line["steps"]


def _compare(plan: Plan, data: _Data, arm: str, first_failed: str) -> Comparison:
    clusters = data.clusters(plan.control, arm)
    pairs, effect = count_pairs(clusters), design_effect(clusters)
    corrected = pairs.over(effect)
    if first_failed:
        verdict = f"not tested: {first_failed} failed"
    else:
        shown = is_not_inferior(corrected, plan.margin_points / 100, plan.alpha)
        verdict = NOT_INFERIOR if shown else NOT_SHOWN
    return Comparison(pairs, effect, pairs.difference, interval(corrected, plan.alpha), verdict)


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _measures(at: int) -> dict[str, Measure]:
    """What is measured of column sums for the arm at that place; the control stands at 0."""

    def column(name: str, of: int) -> Callable[[Sequence[float]], float]:
        index = of * len(COLUMNS) + COLUMNS.index(name)
        return lambda sums: sums[index]

    def per_solved(of: int) -> Measure:
        money, solved = column("money", of), column("solved", of)
        return lambda sums: _over(money(sums), solved(sums))

    def ratio(mine: Measure, control: Measure) -> Measure:
        return lambda sums: _over(mine(sums), control(sums))

    ratios = {name: ratio(column(name, at), column(name, 0)) for name in COLUMNS[1:]}
    return {"each": per_solved(at), "per solved": ratio(per_solved(at), per_solved(0)), **ratios}


def _readcache(mine: Sequence[Line], every: Sequence[Line]) -> dict[str, Any]:
    """The sums of its counters; of wrong omissions also those in runs that do not count."""
    known = [line["readcache"] for line in mine if "readcache" in line]
    counts = {name: sum(each[name] for each in known) for name in (*COUNTED, "markers", "accounts")}
    wrong = [f"{line['instance']}: {each}" for line in every for each in line.get("readcache", {}).get("wrong", ())]
    return {**counts, "wrong": wrong} if known or wrong else {}
