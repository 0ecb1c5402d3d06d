"""Every shape of command through a shell with shims and without: only what the agent reads differs, by its markers.

The quick suite has one kind of stdout, the slow one all of them, the directory on PATH and the whole-command way.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.shims.sandbox import LINES, STDOUTS, Ran, Sandbox
from tests.shims.shapes import BASH_SHAPES, SHAPES, SHORTENED, SHORTENED_WITH_STDERR

pytestmark = pytest.mark.slow  # each shape of a command in real shells, twice

COMMANDS = SHAPES | BASH_SHAPES
QUICK = "merged"  # as most harnesses start a shell: stderr in the same pipe
_SAME = rb", (?:same as )?above in ([^\r\n]*)\](\r?\n)"
_MARKER = rb"\[(?:FILE_UNCHANGED|UNCHANGED|LEFT_OUT) [0-9a-f.]+: "
_OF_FILE = re.compile(_MARKER + rb"(?:(?:\S*/)?f lines? ([\d, -]+)|this output, 60 lines)" + _SAME)
_OF_OUTPUT = re.compile(_MARKER + rb"output lines (\d+)-(\d+)(?: \([\w, ]+\))?" + _SAME)


def filled(ran: Ran, real: bytes) -> Ran:
    """The output as text, with the lines of `f`, the only file that was shown, in the place of each marker.

    Of a read that is the whole command, a marker may count the lines of `real`, the output.
    """

    def of_file(found: re.Match[bytes]) -> bytes:
        ranges = [span.split(b"-") for span in (found[1] or b"1-60").replace(b" ", b"").split(b",")]
        numbers = (number for span in ranges for number in range(int(span[0]), int(span[-1]) + 1))
        front = "{:6}\t" if b" without numbers;" in found[2] else ""
        lines = LINES.splitlines()
        return b"".join((front.format(n) + lines[n - 1]).encode() + found[3] for n in numbers)

    def of_output(found: re.Match[bytes]) -> bytes:
        return b"".join(real.splitlines(keepends=True)[int(found[1]) - 1 : int(found[2])])

    out = _OF_OUTPUT.sub(of_output, _OF_FILE.sub(of_file, ran.out))
    return replace(ran, out=out.decode(errors="replace").encode())


@pytest.mark.parametrize("stdout", [QUICK, *(pytest.param(o, marks=pytest.mark.slow) for o in STDOUTS if o != QUICK)])
@pytest.mark.parametrize("shape", COMMANDS)
def test_shims_in_bash_change_nothing_but_what_the_agent_reads(sandbox: Sandbox, shape: str, stdout: str) -> None:
    words = ["bash", "-c", COMMANDS[shape]]
    ours = sandbox.run(words, sandbox.by_bash_env(), stdout)
    plain = sandbox.run(words, sandbox.env(), stdout)
    assert filled(ours, plain.out) == filled(plain, plain.out)
    shortened = SHORTENED_WITH_STDERR if stdout in ("merged", "pty") else SHORTENED
    # what a harness reads from a file, somebody else may read from it as well
    assert (re.search(_MARKER, ours.out) is not None) == (shape in shortened and stdout != "file")


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_shims_on_path_change_nothing_but_what_the_agent_reads(sandbox: Sandbox, shape: str) -> None:
    check_on_path(sandbox, shape)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_compiled_shims_on_path_change_nothing_but_what_the_agent_reads(compiled: Sandbox, shape: str) -> None:
    check_on_path(compiled, shape)


def check_on_path(chosen: Sandbox, shape: str) -> None:
    """`sh -c`, where children meet the shims as well."""
    record = f". {chosen.shims}/agent-shell.sh; "
    ours = chosen.run(["sh", "-c", record + SHAPES[shape]], chosen.readcache(), "merged")
    plain = chosen.run(["sh", "-c", SHAPES[shape]], chosen.env(), "merged")
    assert filled(ours, plain.out) == filled(plain, plain.out)


@pytest.mark.slow
@pytest.mark.parametrize("shape", COMMANDS)
def test_the_whole_command_way_changes_nothing_but_what_the_agent_reads(sandbox: Sandbox, shape: str) -> None:
    words = ["/bin/bash", "-c", COMMANDS[shape]]
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))
    ours, plain = sandbox.run(words, env, "merged"), sandbox.run(words, sandbox.env(), "merged")
    assert filled(ours, plain.out) == filled(plain, plain.out)
