"""A bash for the tests of harnesses, without processes: it answers from a script."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Output = str | tuple[str, int]  # what is printed; with an exit status, where it is not 0
Command = str | re.Pattern[str]
Answer = Output | Callable[[str], Output]


@dataclass(frozen=True, slots=True)
class BashCall:
    """One command that was sent, and what it came to."""

    command: str
    cwd: str
    output: str
    exit_code: int


class ScriptedBash:
    """`script` maps commands, exact or as patterns that match all of the command, to what they print: a text, a text
    and an exit status, or a function from the command to one of these (which may write files, as the command would).
    Any other command is an AssertionError.

    `bash(command)` gives the output, as does `await bash.acall(command)`; `run` gives a CompletedProcess and `execute`
    takes and gives dicts as mini-swe-agent's environments do. Relative paths are of `cwd`; by default of the working
    directory at that time. `calls` has all that was sent, oldest first.
    """

    def __init__(self, script: Mapping[Command, Answer] | None = None, *, cwd: str | None = None) -> None:
        self.calls: list[BashCall] = []
        self._script: dict[Command, Answer] = dict(script or {})
        self._cwd = cwd

    def add(self, command: Command, answer: Answer) -> None:
        """Adds to the script; a newer answer to the same command takes the older one's place."""
        self._script[command] = answer

    @property
    def commands(self) -> list[str]:
        """The commands that were sent, oldest first."""
        return [call.command for call in self.calls]

    def __call__(self, command: str, *, cwd: str | None = None) -> str:
        return self._call(command, cwd).output

    async def acall(self, command: str, *, cwd: str | None = None) -> str:
        """The same for harnesses whose tool is async."""
        return self._call(command, cwd).output

    def run(self, command: str, *, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` gives it, with stderr in order with stdout."""
        call = self._call(command, cwd)
        return subprocess.CompletedProcess(command, call.exit_code, call.output, "")

    def execute(self, action: Mapping[str, Any], cwd: str = "") -> dict[str, Any]:
        """As mini-swe-agent's `Environment.execute`: takes "command", gives "output" and "returncode"."""
        call = self._call(action["command"], cwd)
        return {"output": call.output, "returncode": call.exit_code, "exception_info": ""}

    def _call(self, command: str, cwd: str | None) -> BashCall:
        where = os.path.abspath(os.path.join(self._cwd or "", cwd or ""))
        call = BashCall(command, where, *self._scripted(command))
        self.calls.append(call)
        return call

    def _scripted(self, command: str) -> tuple[str, int]:
        patterns = (known for known in self._script if isinstance(known, re.Pattern) and known.fullmatch(command))
        found = command if command in self._script else next(patterns, None)
        if found is None:
            known = "".join(f"\n  {_name(known)}" for known in self._script) or " nothing"
            raise AssertionError(f"ScriptedBash has no answer to {command!r}; its script knows{known}")
        answer = self._script[found]
        printed = answer(command) if callable(answer) else answer
        match printed if isinstance(printed, tuple) else (printed, 0):
            case (str() as output, int() as exit_code):
                return output, exit_code
        raise TypeError(
            f"the script's answer to {_name(found)} is {printed!r}: it must be a text, or a text and an exit status"
        )


def _name(command: Command) -> str:
    return repr(command.pattern if isinstance(command, re.Pattern) else command)
