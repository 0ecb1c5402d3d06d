"""The table of an analysis, in 100 columns, and the same as a JSON object."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from .analysis import Analysis, ArmResult, Estimate
from .bootstrap import Interval
from .experiment import Experiment

NONE = "-"
WIDTH = 100  # columns


def result_json(experiment: Experiment, found: Analysis) -> dict[str, Any]:
    """All numbers, unrounded."""
    out = asdict(found)
    for arm in out["arms"]:  # asdict makes plain tuples of them
        arm["per_solved"] = _estimate_json(arm["per_solved"])
        arm["ratios"] = {name: _estimate_json(each) for name, each in arm["ratios"].items()}
    return {
        "state": state(experiment),
        "margin_points": experiment.plan.margin_points,
        "alpha": experiment.plan.alpha,
        "seal": experiment.lines[0]["hash"],
        "end": experiment.end,
        **out,
    }


def _estimate_json(given: Sequence[Any]) -> dict[str, Any]:
    return {"value": given[0], "interval": given[1]}


def state(experiment: Experiment) -> str:
    """How far the experiment has come."""
    last = [line for line in experiment.lines if line["kind"] in ("finished", "stopped")]
    if not experiment.is_done():
        return "not at its end"
    return "finished" if last[-1]["kind"] == "finished" else f"stopped by its {last[-1]['reason']}"


def table(experiment: Experiment, found: Analysis) -> Iterator[str]:
    """The lines of the table."""
    plan, control = experiment.plan, found.arms[0]
    level = f"{100 * (1 - 2 * plan.alpha):g} %"
    yield f"{found.complete} of {found.blocks} blocks complete, {found.instances} instances"
    yield from textwrap.wrap(f"experiment: {state(experiment)}", WIDTH)
    yield f"sealed {experiment.lines[0]['at']} as {experiment.lines[0]['hash']}"
    yield f"results end in {experiment.end}"
    for line in experiment.lines:
        if line["kind"] == "code changed":
            yield from textwrap.wrap(f"the code was changed {line['at']}: {line['reason']}", WIDTH)
    yield ""
    yield from _grid(
        ("cost", "a run", "a solved task", f"of {control.name}'s", level, "verdict"),
        (_cost(arm) for arm in found.arms),
    )
    yield ""
    yield from _grid(
        ("solved", "runs", "tasks", "points", level, f"only it / {control.name}", "verdict"),
        (_solved(arm) for arm in found.arms),
    )
    sure = f"{100 * (1 - plan.alpha):g} % sure, one-sided"
    yield f"not inferior: less than {plan.margin_points:.3g} points below {control.name}, {sure}"
    if plan.pilot is None:
        yield "a pilot: its verdicts count for nothing"
    if plan.repetitions > 1:
        effects = ", ".join(f"{arm.name} {arm.comparison.design_effect:.2f}" for arm in found.arms if arm.comparison)
        yield f"design effect of the repetitions: {effects}"
    yield ""
    yield from _grid(
        ("use", "tokens a run", f"of {control.name}'s", level, "steps a run", f"of {control.name}'s", level),
        (_use(arm) for arm in found.arms),
    )
    yield ""
    yield from _grid(
        ("readcache", "results", "markers", "bounces", "insisted", "failures", "wrong omissions"),
        (_readcache(arm) for arm in found.arms if arm.readcache),
    )
    for arm in found.arms:
        for each in arm.readcache.get("wrong", []):
            yield from textwrap.wrap(f"WRONG, {arm.name}: {each}", WIDTH)
    for arm in found.arms:
        ends = ", ".join(f"{name} {count}" for name, count in sorted(arm.exits.items()))
        again = f"; attempts that failed: {arm.failed_attempts}" if arm.failed_attempts else ""
        yield from textwrap.wrap(f"{arm.name} ended: {ends or NONE}{again}", WIDTH)


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    cells = [head, *rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    for row in cells:
        first = row[0].ljust(widths[0])
        yield "  ".join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]).rstrip()


def _solved(arm: ArmResult) -> tuple[str, ...]:
    solved = int(arm.totals["solved"])
    share = f"{solved} = {100 * solved / arm.runs:.1f} %" if arm.runs else NONE
    beside = arm.comparison
    if beside is None:
        return arm.name, str(arm.runs), share, NONE, NONE, NONE, NONE
    points = f"{100 * beside.difference:+.1f}"
    apart = f"{beside.pairs.only_arm:g} / {beside.pairs.only_control:g}"
    low, high = beside.interval
    return arm.name, str(arm.runs), share, points, f"{100 * low:+.1f} to {100 * high:+.1f}", apart, beside.verdict


def _cost(arm: ArmResult) -> tuple[str, ...]:
    run = f"{arm.totals['money'] / arm.runs:.4f}" if arm.runs else NONE
    return arm.name, run, _number(arm.per_solved.value, ".4f"), *_ratio(arm, "per solved"), arm.cheaper or NONE


def _use(arm: ArmResult) -> tuple[str, ...]:
    means = [f"{arm.totals[name] / arm.runs:,.1f}" if arm.runs else NONE for name in ("tokens", "steps")]
    return arm.name, means[0], *_ratio(arm, "tokens"), means[1], *_ratio(arm, "steps")


def _ratio(arm: ArmResult, name: str) -> tuple[str, str]:
    found = arm.ratios.get(name, Estimate(None, None))
    return _number(found.value, ".3f"), _range(found.interval, ".3f")


def _readcache(arm: ArmResult) -> tuple[str, ...]:
    counts = arm.readcache
    failures = counts["internal_error"] + counts["store_failed"]
    told = [counts[name] for name in ("accounts", "markers", "bounces", "insisted")]
    return arm.name, *(f"{count:,}" for count in (*told, failures, len(counts["wrong"])))


def _number(value: float | None, form: str) -> str:
    return NONE if value is None else format(value, form)


def _range(given: Interval, form: str) -> str:
    return NONE if given is None else f"{given[0]:{form}} to {given[1]:{form}}"
