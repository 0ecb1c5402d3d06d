"""The command line: `python -m tests.benchmarks.ab COMMAND`, from a checkout."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from .analysis import analyse, pilot_of
from .crew import run_blocks
from .errors import AbError
from .evaluation import judge_by_harness, judge_local
from .experiment import JOURNAL, Conduct, Experiment, open_experiment, seal
from .instances import load_instances
from .journal import Journal
from .paired import needed
from .plan import Plan, chosen, draft, read_plan
from .power_table import WANTED, cost_needed, power_tables
from .table import result_json, table


def plan_command(options: argparse.Namespace) -> int:
    """Writes a plan to be edited: of a pilot of two equal arms, or by what that one found."""
    if options.plan.exists():
        raise AbError(f"{options.plan} is there already; remove it, or choose another name")
    plan = draft()
    if options.pilot:
        plan = _after_pilot(options.pilot, options.saving)
    options.plan.write_text(json.dumps(plan.as_json(), indent=2) + "\n", encoding="utf-8")
    print(f"{options.plan}: edit it (README.md says what is what), then `seal {options.plan} FOLDER`")
    return 0


def _after_pilot(folder: Path, saving: float | None) -> Plan:
    """The plan whose margin and number follow from a pilot and from what readcache is expected to save."""
    experiment = open_experiment(folder)
    plan = experiment.plan
    if any(arm is not None for arm in plan.arms.values()):
        raise AbError(f"{folder} is not a pilot: set all its arms to null")
    if saving is None or not 0 < saving < 1:
        raise AbError("--saving SHARE: what `readcache replay` says that you would save of the bill, such as 0.03")
    pilot = pilot_of(plan, experiment.blocks, experiment.lines, experiment.end)
    if pilot is None:
        raise AbError(f"{folder}: too little was solved in it to tell how far chance goes; take more instances")
    drafted = draft(pilot, saving)
    by_cost = cost_needed(pilot.spread, saving, drafted.alpha)
    by_tasks = needed(max(pilot.differ, 1 / pilot.instances), drafted.margin_points / 100, drafted.alpha, WANTED)
    print(f"pilot: {pilot.solved:.1%} solved, {pilot.differ:.1%} of pairs differ, spread of costs {pilot.spread:.2f}")
    print(f"margin: {drafted.margin_points:.2f} points; with more, a solved task costs what it did before")
    print(f"instances for a power of {WANTED:.0%}: {by_cost:,} for costs, {by_tasks:,} for tasks")
    return replace(plan, arms=drafted.arms, saving=saving, pilot=pilot, number=max(by_cost, by_tasks))


def seal_command(options: argparse.Namespace) -> int:
    """Seals a plan: from here on nothing of it changes."""
    from .mini import merged_config

    plan = read_plan(options.plan)
    found = load_instances(plan.instances, plan.split, options.plan.parent, plan.place)
    line = seal(options.folder, plan, chosen(plan, found), merged_config(plan))
    runs = len(open_experiment(options.folder).blocks) * len(plan.arms)
    print(f"{options.folder}: sealed, {runs} runs, at most {runs * plan.run_limits.money:,.2f} by their own limits")
    print(f"publish this before the first run: {line['hash']}")
    return 0


def run_command(options: argparse.Namespace) -> int:
    """Runs what is missing; 3 when something still is."""
    from .mini import MiniPlayer

    with Journal(options.folder / JOURNAL) as journal:
        config = Experiment(options.folder, journal.lines).config
        conduct = Conduct(options.folder, journal, MiniPlayer(config), options.code_changed)
        reason = run_blocks(conduct, options.workers, lambda text: print(text, flush=True))
    print(f"stopped: {reason}" if reason else "all runs are over", flush=True)
    return 3 if reason else 0


def evaluate_command(options: argparse.Namespace) -> int:
    """Judges what is not judged yet; 3 when something is left to do."""
    with Journal(options.folder / JOURNAL) as journal:
        experiment = Experiment(options.folder, journal.lines)
        if experiment.plan.place == "local":
            judge_local(experiment, journal)
            todo = []
        else:
            todo = judge_by_harness(experiment, journal, options.workers)
        left = len(experiment.ended()) - len(experiment.judged())
    if todo:
        print("then run this command again, after:", *todo, sep="\n")
    print(f"{left} runs are still to be judged" if left else "all runs are judged")
    return 3 if left else 0


def analyse_command(options: argparse.Namespace) -> int:
    """Prints the table; 1 when an omission was wrong."""
    experiment = open_experiment(options.folder)
    left = experiment.ended().keys() - experiment.judged().keys()
    if (left or not experiment.is_done()) and not options.interim:
        what = f"{len(left)} runs are not judged: `evaluate`" if left else "runs are missing: `run`"
        raise AbError(f"{what}. To look all the same, outside of the plan: --interim")
    found = analyse(experiment.plan, experiment.blocks, experiment.lines)
    if options.json:
        print(json.dumps({"interim": options.interim, **result_json(experiment, found)}, indent=2))
    else:
        if options.interim:
            print("INTERIM: this is not the analysis that was planned, and its verdicts count for nothing")
        print(*table(experiment, found), sep="\n")
    return 1 if any(arm.readcache.get("wrong") for arm in found.arms) else 0


def verify_command(options: argparse.Namespace) -> int:
    """Proves the journal and the trajectories; 1 when something was changed."""
    experiment = open_experiment(options.folder)
    wrong = experiment.verify()
    hashes = [line["hash"] for line in experiment.lines]
    if options.end and options.end not in hashes:
        wrong.append(f"no line has the hash {options.end}: lines are missing at the end, or it is another experiment's")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(hashes)} lines, {len(experiment.ended())} runs; the last hash is {experiment.end}")
    return 1 if wrong else 0


def power_command(options: argparse.Namespace) -> int:
    """Prints the power of so many instances, for costs and for tasks."""
    print(*power_tables(options.instances, options.alpha), sep="\n")
    return 0


def dry_run_command(options: argparse.Namespace) -> int:
    """Every step with a scripted model."""
    from .dry_run import dry_run

    return dry_run(options.folder, as_json=options.json)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    out = argparse.ArgumentParser(prog="python -m tests.benchmarks.ab", description=__doc__)
    commands = out.add_subparsers(dest="command", required=True)
    plan, sealing, run, evaluate, analysis, verify, power, dry = (
        commands.add_parser(name, help=(function.__doc__ or "").splitlines()[0])
        for name, function in (
            ("plan", plan_command),
            ("seal", seal_command),
            ("run", run_command),
            ("evaluate", evaluate_command),
            ("analyse", analyse_command),
            ("verify", verify_command),
            ("power", power_command),
            ("dry-run", dry_run_command),
        )
    )
    plan.set_defaults(function=plan_command)
    sealing.set_defaults(function=seal_command)
    run.set_defaults(function=run_command)
    evaluate.set_defaults(function=evaluate_command)
    analysis.set_defaults(function=analyse_command)
    verify.set_defaults(function=verify_command)
    power.set_defaults(function=power_command)
    dry.set_defaults(function=dry_run_command)
    for each in (plan, sealing):
        each.add_argument("plan", type=Path)
    plan.add_argument("--pilot", type=Path, metavar="FOLDER", help="the results of a pilot of two equal arms")
    plan.add_argument("--saving", type=float, metavar="SHARE", help="of the bill, as `readcache replay` expects it")
    for each in (sealing, run, evaluate, analysis, verify):
        each.add_argument("folder", type=Path)
    for each in (run, evaluate):
        each.add_argument("--workers", type=int, default=1, help="so many at once (1)")
    run.add_argument("--code-changed", metavar="REASON", default="", help="go on with other code than was sealed")
    analysis.add_argument("--interim", action="store_true", help="before the end; its verdicts count for nothing")
    for each in (analysis, dry):
        each.add_argument("--json", action="store_true")
    verify.add_argument("--end", metavar="HASH", default="", help="a hash that was published: its line must be there")
    power.add_argument("--instances", type=int, default=500)
    power.add_argument("--alpha", type=float, default=0.025)
    dry.add_argument("folder", type=Path, nargs="?", help="kept there; without it, nothing is kept")
    return out


def main(words: list[str] | None = None) -> int:
    """Exit status 2 for what cannot be done."""
    options = parser().parse_args(words)
    try:
        status: int = options.function(options)
    except AbError as error:
        print(f"ab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ab: interrupted; the same command goes on where it was", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
