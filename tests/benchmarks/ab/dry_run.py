"""The dry run: every step of a real experiment on tiny local repositories, with a scripted model in the model's place.

The steps are run as a user runs them, each in a process of its own. One is killed in the middle of its runs; the budget
ends before the work does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from .errors import AbError
from .experiment import JOURNAL
from .plan import Limits, Pilot, draft
from .tiny import COUNT, tiny_instances

SEED = 14
STEPS = 20  # a run of the script takes 11
BEFORE_THE_KILL = 3  # runs that are over by then
# Too little for the last block: its four runs may take 4 * STEPS, and all blocks before it take 44 steps each. The
# attempt that is killed takes STEPS at most, for which the last block but one has room.
WHOLE_STEPS = (COUNT - 1) * 44 + 4 * STEPS - 1
PILOT = Pilot(COUNT, 5 / COUNT, 0.1, 1.0, "none")  # made up, as everything here
PATIENCE = 120.0  # seconds for the first runs, on a machine that is busy


def dry_run(folder: Path | None, *, as_json: bool) -> int:
    """All steps; the exit status of the analysis, or that of the first step that did not end as it should."""
    with tempfile.TemporaryDirectory() as temporary:
        kept = folder or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        return _Steps(kept, quiet=as_json).all(["--json"] if as_json else [])


class _Steps:
    def __init__(self, folder: Path, *, quiet: bool) -> None:
        self._plan, self._folder, self._quiet = folder / "dry-plan.json", folder / "experiment", quiet

    def all(self, form: list[str]) -> int:
        self._write_plan()
        folder = str(self._folder)
        self._step(0, "seal", str(self._plan), folder)
        self._kill_a_run()
        self._step(3, "run", folder)  # stopped by the budget
        self._step(0, "evaluate", folder)
        self._step(0, "verify", folder)
        return self._step(None, "analyse", folder, *form)

    def _write_plan(self) -> None:
        instances = self._plan.with_name("dry-instances.json")
        instances.write_text(json.dumps(tiny_instances(), indent=1), encoding="utf-8")
        model = {"model_name": "scripted", "model_class": f"{__package__}.scripted.ScriptedModel"}
        plan = replace(
            draft(PILOT, saving=0.06, number=None),
            instances=instances.name,
            seed=SEED,
            run_limits=Limits(money=1.0, tokens=1_000_000, steps=STEPS, seconds=600),
            whole_limits=Limits(money=100.0, tokens=50_000_000, steps=WHOLE_STEPS),
            settings={"model": model, "environment": {"env": {"BASH_ENV": "/dev/null"}}},
            place="local",
        )
        self._plan.write_text(json.dumps(plan.as_json(), indent=2), encoding="utf-8")

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", str(__package__), *words]

    def _say(self, text: str) -> None:
        if not self._quiet:
            print(text, flush=True)

    def _step(self, wanted: int | None, *words: str) -> int:
        self._say(f"\n$ {' '.join(words)}")
        shown = None if not self._quiet or wanted is None else subprocess.DEVNULL
        status = subprocess.run(self._command(*words), stdout=shown, env=_environment()).returncode
        if wanted is not None and status != wanted:
            raise AbError(f"the step `{' '.join(words)}` ended with {status} where {wanted} was expected")
        return status

    def _kill_a_run(self) -> None:
        """Starts the runs and kills the process as soon as a few are over and the next has begun."""
        self._say(f"\n$ run {self._folder}    (killed after {BEFORE_THE_KILL} runs)")
        shown = subprocess.DEVNULL if self._quiet else None
        process = subprocess.Popen(self._command("run", str(self._folder)), stdout=shown, env=_environment())
        journal, until = self._folder / JOURNAL, time.monotonic() + PATIENCE
        while time.monotonic() < until and process.poll() is None:
            text = journal.read_text(encoding="utf-8")
            if text.count('"kind":"began"') > text.count('"kind":"ended"') >= BEFORE_THE_KILL:
                break
            time.sleep(0.01)
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("READCACHE")}
    return {**kept, "MSWEA_SILENT_STARTUP": "1", "MSWEA_CONFIGURED": "true"}
