"""readcache as an arm of code-compression-bench, github.com/daseinlabs/code-compression-bench at 42a0c02.

There each arm is a file: copy this one to `arms/readcache.py`, add `from . import readcache` to `arms/__init__.py`, and
install readcache beside it. Then

    make prepare && python -m bench.cc_runner --tasks tasks.json --arms baseline,readcache,readcache-max

Its agent is Claude Code by the Agent SDK, which reads no settings of the user. So the hooks of `readcache init` come as
a plugin. The bench allows the tool `Agent` to every arm with a plugin, and not to its baseline: say so beside the
results.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.arm import ToolArm, ToolAttach, register


class ReadcacheArm(ToolArm):  # type: ignore[misc]  # the bench is not there where types are checked
    """Claude Code with readcache's hooks."""

    name = "readcache"
    policy = "default"

    def ready(self) -> tuple[bool, str]:
        """Whether the program is there."""
        return (True, "ok") if shutil.which("readcache") else (False, "readcache is not on PATH: pip install readcache")

    def attach(self) -> ToolAttach:
        """A plugin with the hooks, made anew for each run."""
        directory = Path(tempfile.mkdtemp(prefix="readcache-arm-"))
        words = ["readcache", "init", "claude-code", "--policy", self.policy]
        env = {**os.environ, "HOME": str(directory / "home")}
        subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)
        hooks = json.loads((directory / "home/.claude/settings.json").read_text(encoding="utf-8"))["hooks"]
        for name, told in (
            (".claude-plugin/plugin.json", {"name": "readcache", "version": "1.0.0", "description": "a read cache"}),
            ("hooks/hooks.json", {"hooks": hooks}),
        ):
            file = directory / "plugin" / name
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(told), encoding="utf-8")
        return ToolAttach(plugin_dir=str(directory / "plugin"))


class ReadcacheMaxArm(ReadcacheArm):
    """With every omission that there is."""

    name = "readcache-max"
    policy = "max"


register("readcache")(ReadcacheArm)
register("readcache-max")(ReadcacheMaxArm)
