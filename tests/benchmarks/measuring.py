"""What the benchmarks share: recorded or made-up sessions, a loop over them, a table, a verdict.

The machine is noisy, so nothing here is an absolute time: two sides are run in turns and compared by their medians.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readcache import Reply, Session

Record = dict[str, Any]
# A target is missed only beyond this factor: the rest is noise of a shared machine.
CLEAR_MARGIN = 1.25


@dataclass
class Table:
    """Rows of results, and the names of the targets that were clearly missed."""

    missed: list[str] = field(default_factory=list)

    def row(self, what: str, value: float, note: str = "", *, most: float | None = None, unit: str = "x") -> None:
        """Prints one row; `most` is the target."""
        verdict = ""
        if most is not None:
            verdict = "ok" if value <= most else "over" if value <= most * CLEAR_MARGIN else "MISSED"
            if verdict == "MISSED":
                self.missed.append(what)
        target = "" if most is None else f"at most {most:g}{unit}"
        print(f"{what:50s} {value:9.3f}{unit:3s} {target:15s} {verdict:6s} {note}", flush=True)


def main(description: str | None, measure: Callable[[argparse.Namespace, Table], None]) -> None:
    """The command line that every benchmark has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="recorded sessions; without it, made-up ones")
    parser.add_argument("--short", action="store_true", help="fewer rounds")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is clearly missed")
    chosen = parser.parse_args()
    table = Table()
    measure(chosen, table)
    if chosen.check and table.missed:
        sys.exit(f"missed: {', '.join(table.missed)}")


def quartiles(values: Sequence[float]) -> str:
    """The first and third quartile."""
    low, _, high = statistics.quantiles(values, n=4)
    return f"{low:.3f}-{high:.3f}"


def in_turns(
    one: Callable[[], object], other: Callable[[], object], rounds: int, between: Callable[[], object] | None = None
) -> tuple[list[float], list[float]]:
    """Ratios one / other of each round: of wall time, and of processor time with that of child processes. `between`
    is called before each round and not measured."""
    wall: list[float] = []
    cpu: list[float] = []
    for round_ in range(rounds + 2):
        sides = {}
        if between is not None:
            between()
        for way in (one, other) if round_ % 2 else (other, one):
            began, began_cpu = time.perf_counter(), processor_seconds()
            way()
            sides[way] = time.perf_counter() - began, processor_seconds() - began_cpu
        if round_ >= 2:  # the first ones warm up
            wall.append(sides[one][0] / sides[other][0])
            cpu.append(sides[one][1] / sides[other][1])
    return wall, cpu


def run_measured(words: Sequence[str]) -> tuple[str, float, int]:
    """Runs a program to its end: what it printed, its seconds, and the bytes that its largest process held at
    most; no less than this one held when it began."""
    with tempfile.TemporaryFile("w+") as out:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(words)} ended with {process.returncode}")
        out.seek(0)
        return out.read(), seconds, usage.ru_maxrss * 1024


def processor_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


# ---------------------------------------------------------------- sessions


def sessions(data: Path | None, every: int = 1) -> Iterator[list[Record]]:
    """Each n-th session under `data` (`*.jsonl.xz`, one session a line), or made-up ones."""
    if data is None:
        yield from (made_up(random.Random(seed)) for seed in range(0, 40, every))
        return
    at = 0
    for path in sorted(data.glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if at % every == 0:
                    yield json.loads(line)["records"]
                at += 1


def made_up(rng: random.Random, calls: int = 80) -> list[Record]:
    """What an agent does: looks at files, whole or by range, changes them, looks again, runs tests."""
    tree = {f"src/module_{k}.py": source(rng, rng.randint(40, 900)) for k in range(12)}
    out: list[Record] = []
    for _ in range(calls):
        path = rng.choice(list(tree)[: 3 + len(out) // 10])
        lines = tree[path]
        start = rng.randint(1, len(lines))
        end = min(len(lines), start + rng.randint(10, 200))
        kind = rng.choice(["cat", "sed", "sed", "nl", "edit", "tests", "list", "read"])
        if kind == "edit":
            lines[rng.randrange(len(lines))] = f"    changed = {rng.random()}"
            out.append(_bash(f"sed -i 's/a = .*/changed/' {path}", ""))
        elif kind == "cat":
            out.append(_bash(f"cat {path}", _text(lines)))
        elif kind == "sed":
            out.append(_bash(f"sed -n '{start},{end}p' {path}", _text(lines[start - 1 : end])))
        elif kind == "nl":
            shown = [f"{n:6}\t{line}" for n, line in enumerate(lines[start - 1 : end], start)]
            out.append(_bash(f"nl -ba {path} | sed -n '{start},{end}p'", _text(shown)))
        elif kind == "tests":
            out.append(_bash("python -m pytest -q", _text([f"test_{k} took {rng.random()}" for k in range(60)])))
        elif kind == "list":
            out.append(_bash("ls -la src", _text([f"-rw-r--r-- 1 me me 4096 {name}" for name in tree])))
        else:
            shown = [f"{n:6}\t{line}" for n, line in enumerate(lines[start - 1 : end], start)]
            given = {"path": f"/testbed/{path}", "offset": start, "limit": end - start + 1}
            out.append({"tool": "read", "input": given, "output": _text(shown), "cwd": "/testbed"})
    return out


def source(rng: random.Random, count: int) -> list[str]:
    """Lines of about 40 characters, like a program's."""

    def line(n: int) -> str:
        return f"{' ' * rng.randint(0, 8)}name_{rng.randrange(10**6)} = call({rng.random():.9f}, {n})"

    return [line(n) for n in range(count)]


def _bash(command: str, output: str) -> Record:
    return {"tool": "bash", "input": {"command": command}, "output": output, "cwd": "/testbed"}


def _text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def tell(session: Session, record: Record) -> Reply | None:
    """Puts one record through the session; None where it is no call to be answered."""
    tool, given, output = record["tool"], record["input"], record["output"]
    if tool == "_compact":
        session.compacted(keep=[])
    elif tool == "bash" and isinstance(given.get("command"), str):
        return session.observe(given["command"], output, cwd=record["cwd"] or "/testbed")
    elif tool == "read" and given.get("path"):
        start = max(1, _number(given.get("offset")) or 1)
        limit = _number(given.get("limit"))
        end = start + limit - 1 if limit else None
        return session.observe_read(str(given["path"]), output, start=start, end=end, numbered=True)
    elif tool in ("edit", "write", "patch") and given.get("path"):
        session.wrote(str(given["path"]), content=given.get("content") or given.get("file_text"))
    return None


def _number(value: object) -> int | None:
    """Models send numbers as text, lists or nonsense now and then."""
    try:
        return int(value)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return None
