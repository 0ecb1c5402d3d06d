"""What is counted as shown again, whatever stands in front of the lines."""

from __future__ import annotations

import pytest

from readcache.core.model.tool_call import AskedCommand, ToolCall
from readcache.report.replay.policy_run import Baseline

LINES = [f"line {n} of the file, like no other" for n in range(1, 31)]


def ran(name: str, command: str, form: str) -> ToolCall:
    output = "".join(f"{form.format(n)}{line}\n" for n, line in enumerate(LINES, 1))
    return ToolCall(
        name, "bash", {"command": command}, output, exit_code=0, cwd="/w", asked=AskedCommand(command), said=command
    )


@pytest.mark.parametrize(
    ("command", "form"),
    [("cat f", ""), ("cat -n f", "{:6}\t"), ("grep -n line f", "{}:"), ("nl -ba -s': ' f", "{:6}: ")],
)
def test_lines_shown_again_are_counted_in_every_form(command: str, form: str) -> None:
    baseline = Baseline()
    baseline.call(ran("1", "cat f", ""))
    baseline.call(ran("2", command, form))
    assert baseline.end()["bound"] == sum(len(line) + 1 for line in LINES), "numbers are no lines of the file"
