"""Claude Code with readcache, as an agent for Harbor: `install` is Harbor's own, then pip and `readcache init`.

    pip install harbor                                    # Python 3.12; and Docker, or one of Harbor's other places
    export PYTHONPATH=. ANTHROPIC_API_KEY=…
    harbor run -d swe-bench-verified -m anthropic/claude-opus-4-8 -a claude-code                      # without
    harbor run -d swe-bench-verified -m anthropic/claude-opus-4-8 --ak policy=max \\
        -a tests.benchmarks.ab.harbor_agent:ClaudeCodeWithReadcache                                    # with

`--ak package=…` is what pip is given in place of `readcache`: a version, an address, a wheel in the image. What was
saved stands beside the transcript, in `readcache-gain.json`.
"""

from __future__ import annotations

import shlex
from typing import Any

from harbor.agents.installed.claude_code import ClaudeCode, ClaudeCodeOptions

PREFIX = "$HOME/.readcache"  # of the environment that pip installs into: the task's own stays as it is
GAIN = "readcache-gain.json"


class Options(ClaudeCodeOptions):  # type: ignore[misc]  # Harbor is not there where types are checked
    """Claude Code's, and ours. `policy`: the name of a preset. `package`: what pip installs."""

    policy: str = "default"
    package: str = "readcache"


class ClaudeCodeWithReadcache(ClaudeCode):  # type: ignore[misc]
    """The agent."""

    options_model = Options

    @staticmethod
    def name() -> str:
        """In Harbor's results."""
        return "claude-code-with-readcache"

    async def install(self, environment: Any) -> None:
        """Claude Code, then readcache. Harbor gives Claude Code a directory of its own, so the hooks go there."""
        await super().install(environment)
        await self.ensure_system_dependencies(environment, ("curl", "bash"))
        sessions = shlex.quote((self.environment_logs_dir / "sessions").as_posix())
        steps = [
            "command -v uv >/dev/null || curl -LsSf https://astral.sh/uv/install.sh | sh",
            f'export PATH="$HOME/.local/bin:{PREFIX}/bin:$PATH"',
            f'uv venv --quiet --python ">=3.10" "{PREFIX}"',
            f'uv pip install --quiet --python "{PREFIX}/bin/python" {shlex.quote(self.options.package)}',
            f"readcache init claude-code --policy {shlex.quote(self.options.policy)}",
            f"mkdir -p {sessions}",
            f"cp ~/.claude/settings.json {sessions}/settings.json",
        ]
        await self.exec_as_agent(environment, command="set -e; " + "; ".join(steps))

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Claude Code's run, and what readcache says of it."""
        try:
            await super().run(instruction, environment, context)
        finally:
            told = shlex.quote((self.environment_logs_dir / GAIN).as_posix())
            await self.exec_as_agent(environment, command=f'"{PREFIX}/bin/readcache" gain --json > {told} || true')
