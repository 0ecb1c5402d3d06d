"""What the tests of a host measured, kept beside them with date and versions: the table in the docs is made of it.

`python tests/real_hosts/run.py --write NAME` writes it.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROUNDS = 10  # that are written; one more before them is not counted, as programs and imports are cold in it
IS_KEPT = bool(os.environ.get("READCACHE_WRITE_MEASURED"))


class Run(NamedTuple):
    """One scripted conversation."""

    chars: int  # characters of all tool results in all requests that the model was sent
    seconds: float  # wall time
    calls: int  # tool calls


def compare(
    name: str, versions: Mapping[str, str], run_steps: Callable[[Path, bool], Run], root: Path, *, most: float = 0.8
) -> None:
    """Holds one conversation without readcache and with it, in turn: once, or, where it is to be written, ten times.
    `run_steps(directory, on)` does so in a directory `directory` that it makes. AssertionError where more than
    `most` of the characters are left, or the file that the conversation edits differs."""
    runs: dict[bool, list[Run]] = {False: [], True: []}
    for number in range(1 + ROUNDS if IS_KEPT else 1):
        edited = set()
        for on in (False, True):
            directory = root / f"{number}-{'with' if on else 'without'}"
            runs[on].append(run_steps(directory, on))
            edited.add(min(directory.rglob("shop.py")).read_bytes())
        assert len(edited) == 1, "the files differ"
    assert runs[True][0].chars < most * runs[False][0].chars
    if IS_KEPT:
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        found = {"date": today, "versions": dict(versions), "before": _kept(runs[False]), "after": _kept(runs[True])}
        text = json.dumps({name: found}, indent=1) + "\n"
        (HERE / os.environ["READCACHE_TEST_HOST"] / f"measured-{name}.json").write_text(text, encoding="utf-8")


def _kept(runs: list[Run]) -> dict[str, object]:
    times = [1000 * run.seconds / run.calls for run in runs[1:]]
    return {"chars": runs[0].chars, "runs": len(times), "milliseconds": round(median(times), 1)}
