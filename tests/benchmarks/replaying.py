"""`readcache replay` over recorded sessions: its time, its memory, and whether an independent check finds the same.

    python tests/benchmarks/replaying.py --data PATH… [--checks trajectories.py] [--write] [--check]
    python -m tests.docs.generate --write

Without `--data` it replays the transcripts of the tests. The check is the black-box one beside the recordings: it knows
the public interface alone, keeps the agent's context itself, and counts what was read again with a parser of its own.
`--write` keeps the figures in measured-replay.json, of which the README's are made. With `--bill NAME`, which says
where these transcripts are public, it keeps what they say of the bill in measured-bill.json, and does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from measuring import Table, processor_seconds, run_measured
from rivals import digest

from readcache import __version__
from readcache.core.model.policy import PRESETS

MEASURED = Path(__file__).with_name("measured-replay.json")
BILL = Path(__file__).with_name("measured-bill.json")
TOP = Path(__file__).parents[2]
TRANSCRIPTS = TOP / "tests/replay/data"
MOST_SECONDS, MOST_BYTES = 120, 1_000_000_000  # of two cores, for 33,000 calls
# One line of the check, for an agent or for all: the columns that are compared or kept.
CHECKED = re.compile(
    r"^(?P<agent>\S+) +sessions .*?exact (?P<exact>\d+)%  saved (?P<plain>[\d.]+)% of out, on reads (?P<bound>\d+)% of "
    r"bound, (?P<clean>\d+)% of clean  omissions (?P<replies>\d+)  wrong (?P<wrong>\d+)  markers (?P<markers>\d+)  "
    r"priced (?P<priced>[\d.]+)%  break-even (?P<break_even>\d+)%$",
    re.MULTILINE,
)
# column -> the share of the replay that it rounds, and to how many places. Not the break-even: a turn's price has a
# part in tokens, and the check counts four characters as a token.
ROUNDED = {"plain": ("plain", 1), "priced": ("priced", 1)}
Figures = dict[str, dict[str, float]]


def replay(paths: Sequence[Path], *options: str) -> tuple[dict[str, Any], float, float, int]:
    """What `readcache replay --json` prints, with the form of our recordings known to it; its seconds, those of
    processors, and the bytes that its processes held at most."""
    words = [sys.executable, "-m", "tests.replay.plain_form", "replay", "--json", *options, *map(str, paths)]
    before = processor_seconds()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TOP), *filter(None, [os.environ.get("PYTHONPATH")])])
    out, seconds, size = run_measured(words)
    told: dict[str, Any] = json.loads(out)
    # of memory: a worker for each core, and the one that adds up
    return told, seconds, processor_seconds() - before, size * (1 + (os.cpu_count() or 1))


def figures(told: Mapping[str, Any]) -> Figures:
    """For each preset what the documents tell of it; shares of 1."""
    out = told["counts"]["out"]
    return {name: _figures(counts, out) for name, counts in told["policies"].items()}


def _figures(counts: Mapping[str, int], out: int) -> dict[str, float]:
    saved = counts["saved_priced"]
    return {
        "plain": counts["saved"] / max(1, out),
        "priced": saved / max(1, counts["out_priced"]),
        "break-even": saved / max(1, saved + counts["turns_priced"]),
        "markers": counts["markers"],
        "replies": counts["omissions"],
        "wrong": counts["wrong"],
    }


def check(script: Path, paths: Sequence[Path], policy: str) -> dict[str, dict[str, str]]:
    """What the check found: agent -> its columns; `ALL` is all of them."""
    words = [sys.executable, str(script), "--policy", policy, "--data", *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = {match["agent"]: match.groupdict() for match in CHECKED.finditer(done.stdout)}
    if "ALL" not in found:
        sys.exit(f"{script} printed no line that is understood: {done.stdout[-300:]!r}")
    return found


def disagreements(ours: Mapping[str, float], theirs: Mapping[str, str]) -> Iterator[str]:
    """Where a replay and the check differ by more than rounding."""
    for column in ("markers", "replies", "wrong"):
        if ours[column] != int(theirs[column]):
            yield f"{column}: {ours[column]} and {theirs[column]}"
    for column, (name, decimals) in ROUNDED.items():
        if abs(100 * ours[name] - float(theirs[column])) > 0.501 * 10**-decimals:  # rounded either way
            yield f"{column}: {100 * ours[name]:.3f} % and {theirs[column]} %"


def drifts(of: Figures, digests: Sequence[str]) -> list[str]:
    """Where the figures in the documents are others, if they are of the same recordings."""
    before = json.loads(MEASURED.read_text(encoding="utf-8"))
    if before["sha256"] != list(digests):
        return []
    told = before["policies"]
    return [
        f"{name}, {column}: {value:.5g}, the documents say {told[name][column]:.5g}"
        for name, row in of.items()
        for column, value in row.items()
        if abs(value - told[name][column]) > 0.000_01  # it keeps five places
    ]


def kept(told: Mapping[str, Any], of: Figures, checked: Mapping[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """What measured-replay.json has of it."""
    for name, row in of.items():
        row |= {column: int(checked[name]["ALL"][column]) / 100 for column in ("bound", "clean")}
    return {
        "readcache": __version__,
        "sha256": [digest(path) for path in paths],
        "sessions": told["counts"]["sessions"],
        "calls": told["counts"]["calls"],
        "characters": told["counts"]["out"],
        "exact_bound": int(checked["default"]["ALL"]["exact"]) / 100,
        "agents": {
            a: round(float(row["plain"]) / 100, 5) for a, row in sorted(checked["default"].items()) if a != "ALL"
        },
        "policies": {name: {c: round(v, 5) for c, v in row.items()} for name, row in of.items()},
    }


def billed(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What measured-bill.json has of it."""
    counts = told["counts"]
    sizes = {size: counts[size] for size in ("sessions", "calls", "requests", "prompt")}
    return {"transcripts": name, **sizes, "unpriced_sessions": sum(told["unpriced"].values())} | {
        "policies": {
            preset: {
                "plain": round(found["saved"] / counts["out"], 5),
                "input": round(found["saved_input"] / counts["prompt"], 5),
                "bill": round(found["saved_bill"] / counts["bill"], 5),
            }
            for preset, found in told["policies"].items()
        }
    }


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", default=[TRANSCRIPTS], metavar="PATH", help="recorded sessions")
    parser.add_argument("--checks", type=Path, metavar="FILE", help="the black-box check, trajectories.py")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {MEASURED.name}")
    parser.add_argument("--bill", metavar="NAME", help=f"keep what public transcripts say of the bill in {BILL.name}")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is clearly missed")
    chosen = parser.parse_args()
    if chosen.write and not (chosen.checks and all(path.is_dir() for path in chosen.data)):
        parser.error("--write is for directories of recordings, with --checks")
    return chosen


def main() -> None:
    chosen, table = parsed(), Table()
    told, seconds, of_processors, size = replay(chosen.data)
    if chosen.bill:
        BILL.write_text(json.dumps(billed(told, chosen.bill), indent=1) + "\n", encoding="utf-8")
        return
    of = figures(told)
    print("{sessions} sessions, {calls:,} calls, {out:,} characters".format(**told["counts"]))
    table.row("all presets, on all cores", seconds, f"{MOST_SECONDS} are wanted where nothing else runs", unit="s")
    table.row("the same, of processors", of_processors, most=2 * MOST_SECONDS, unit="s")
    table.row("memory of all its processes, at most", size / 1e6, most=MOST_BYTES / 1e6, unit="MB")
    checked = {name: check(chosen.checks, chosen.data, name) for name in PRESETS} if chosen.checks else {}
    drifted = [] if chosen.write else drifts(of, [digest(path) for path in chosen.data])
    table.row("figures that have drifted from the documents", len(drifted), "; ".join(drifted), most=0, unit="")
    for name, row in of.items():
        print(name, *(f"{column} {value:.4g}" for column, value in row.items()))
        table.row(f"{name}: wrong", row["wrong"], most=0, unit="")
        found = list(disagreements(row, checked[name]["ALL"])) if checked else []
        table.row(f"{name}: otherwise than the check", len(found), "; ".join(found), most=0, unit="")
    if chosen.write:
        text = json.dumps(kept(told, of, checked, chosen.data), indent=1)
        MEASURED.write_text(text + "\n", encoding="utf-8")
    if chosen.check and table.missed:
        sys.exit(f"missed: {', '.join(table.missed)}")


if __name__ == "__main__":
    main()
