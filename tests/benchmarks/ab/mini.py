"""mini-swe-agent carries out the runs, by the very function that its own runner for SWE-bench calls.

What differs between the arms is the model class alone, and under it readcache's settings.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from readcache import UsageError
from readcache.hosts.adapter_settings import policy_by_settings

from .errors import AbError
from .experiment import trajectory_path
from .instances import Instance
from .local import make_repository
from .models import MeteredModel, WitnessedModel
from .plan import NO_MODEL, Plan, Run

Config = dict[str, Any]


def merged_config(plan: Plan) -> Config:
    """mini's configuration of all arms. AbError without mini-swe-agent, or without a model."""
    _be_silent()
    try:
        from minisweagent.config import get_config_from_spec
        from minisweagent.utils.serialize import recursive_merge
    except ImportError as error:
        raise AbError("mini-swe-agent is not installed: pip install 'readcache[mini-swe-agent]'") from error
    config: Config = recursive_merge(*(get_config_from_spec(spec) for spec in plan.config), dict(plan.settings))
    # mini's own files name one, which nobody should come by unawares.
    if plan.settings.get("model", {}).get("model_name", "") in ("", NO_MODEL):
        raise AbError("the plan names no model: put it into settings.model.model_name")
    if "readcache" in config["model"]:
        raise AbError("the plan's settings switch readcache on in every arm: take `readcache` out of model")
    for arm, settings in plan.arms.items():
        try:
            policy_by_settings(settings or {}, {})
        except UsageError as error:
            raise AbError(f"the arm {arm}: {error}") from error
    loaded: Config = json.loads(json.dumps(config))
    return loaded


def run_config(plan: Plan, config: Mapping[str, Any], run: Run) -> Config:
    """mini's configuration of one run. A seed among the model's arguments is that of the first repetition; the arms of
    one block have the same one."""
    out: Config = json.loads(json.dumps(config))
    limits, model = plan.run_limits, out["model"]
    metered = {"model_class": model.get("model_class", ""), "tokens": limits.tokens}
    model |= {"model_class": _name(MeteredModel), "metered": metered}
    if "seed" in model.get("model_kwargs", {}):
        model["model_kwargs"]["seed"] += run.repetition - 1
    settings = plan.arms[run.arm]
    if settings is not None:
        model |= {"model_class": _name(WitnessedModel), "readcache": {**settings, "model_class": _name(MeteredModel)}}
    agent = {"cost_limit": limits.money, "step_limit": limits.steps, "wall_time_limit_seconds": limits.seconds}
    out["agent"] = {**out.get("agent", {}), **agent}
    return out


def _be_silent() -> None:
    """mini greets when it is imported, and tells of each trajectory that it saves; errors it still tells."""
    os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
    logging.getLogger("minisweagent").setLevel(logging.WARNING)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


class MiniPlayer:
    """Plays runs with mini-swe-agent."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def play(self, plan: Plan, run: Run, instance: Instance, directory: Path) -> None:
        """See `Player`."""
        _be_silent()
        from minisweagent.run.benchmarks.swebench import process_instance
        from minisweagent.run.benchmarks.utils.batch_progress import RunBatchProgressManager

        _be_silent()  # its own import has set the level
        config = run_config(plan, self._config, run)
        path = trajectory_path(directory, run)
        path.parent.mkdir(parents=True, exist_ok=True)
        config["agent"]["output_path"] = path  # saved after each step, so that a crash leaves what was used
        if plan.place == "local":
            repository = make_repository(instance, directory / "testbed")
            local = {"environment_class": "local", "cwd": str(repository)}
            config["environment"] = {**config.get("environment", {}), **local}
        process_instance(instance, directory, config, RunBatchProgressManager(1))
