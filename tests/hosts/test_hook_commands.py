"""The commands that `init` gives to hosts as hooks, run as the hosts run them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from readcache.hosts import find_host
from readcache.hosts.host import InstallTarget, OwnFile
from tests.helpers.files import WATCHDOG

# What may have become of the program after `init`: the text of the file in its place.
LOST = {
    "program": None,
    "interpreter": "#!/gone/venv/bin/python\n",
    "package": f"#!{sys.executable}\nimport a_package_that_is_gone\n",
    "subcommand": "#!/bin/sh\necho 'error: invalid choice: hook' >&2; exit 2\n",
    "process": "#!/bin/sh\nkill -9 $$\n",
}


def hooks(name: str, directory: Path, program: str, mode: str = "on") -> list[dict[str, Any]]:
    """The hooks of a host's settings."""
    target = InstallTarget(str(directory), str(directory), False, (program,), mode, "default")
    return [found for change in find_host(name).changes(target) for found in _hooks(change)]


def _hooks(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, OwnFile):
        return
    if isinstance(value, dict) and "timeout" in value:
        yield value
    elif isinstance(value, dict) and "timeoutSec" in value:  # Copilot's names
        yield {"command": value["bash"], "timeout": value["timeoutSec"]}
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _hooks(each)


def run(shell: str, command: str) -> tuple[int, bytes]:
    """The status and what was printed on stdout."""
    ran = subprocess.run([shell, "-c", command], input=b"{}", capture_output=True, timeout=WATCHDOG, check=False)
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("name", ["claude-code", "codex", "copilot", "gemini"])
@pytest.mark.parametrize("mode", ["on", "advise"])
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_what_became_of_the_program_is_no_refusal(name: str, mode: str, lost: str, shell: str, tmp_path: Path) -> None:
    """The program of a hook was gone: the host took status 127 with a word on stderr for a refusal, and every result
    was lost."""
    program, text = tmp_path / "a place" / "readcache", LOST[lost]
    if text is not None:
        program.parent.mkdir()
        program.write_text(text)
        program.chmod(0o700)
    for hook in hooks(name, tmp_path, str(program), mode):
        assert run(shell, hook["command"]) == (0, b"")


@pytest.mark.parametrize("name", ["claude-code", "codex", "copilot", "gemini"])
def test_the_program_is_given_the_event_and_its_answer_passed_on(name: str, tmp_path: Path) -> None:
    program = tmp_path / "readcache"
    program.write_text('#!/bin/sh\necho "$@"; cat\n')
    program.chmod(0o700)
    words = f"hook {name} --advise\n".encode()
    assert {run("sh", hook["command"]) for hook in hooks(name, tmp_path, str(program), "advise")} == {
        (0, words + b"{}")
    }


@pytest.mark.parametrize("name", ["claude-code", "codex", "copilot", "gemini"])
def test_a_host_waits_for_a_hook_no_longer_than_five_seconds(name: str, tmp_path: Path) -> None:
    unit = 1000 if name == "gemini" else 1
    assert {hook["timeout"] / unit for hook in hooks(name, tmp_path, "/v/readcache")} == {5}
