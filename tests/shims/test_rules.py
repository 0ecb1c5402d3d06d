"""What the agent sees through shims follows the rules of every other way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import Policy
from readcache.core.model.policy import SUBMIT_COMMANDS
from readcache.process import failures
from tests.shims.sandbox import LINES, OTHER, ROOT, Sandbox, start

MARKER = "[FILE_UNCHANGED "


def bash(sandbox: Sandbox, command: str, stdout: str = "pipe", **more: str) -> str:
    env = sandbox.by_bash_env(**more)
    return start(["bash", "-c", command], env, stdout, sandbox.directory).out.decode().replace("\r\n", "\n")


def readcache(sandbox: Sandbox, *words: str) -> str:
    env = sandbox.readcache(PYTHONPATH=str(ROOT))
    words = (sys.executable, "-m", "readcache", *words)
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture(autouse=True)
def _fresh(sandbox: Sandbox) -> None:
    sandbox.reset()


def test_a_first_read_is_shown_a_second_one_cut_and_one_that_insists_is_served(sandbox: Sandbox) -> None:
    outs = [bash(sandbox, "cat sub/g") for _ in range(3)]
    assert outs[0] == outs[2] == OTHER
    assert outs[1].startswith(MARKER)
    assert outs[1].count("\n") == 1


def test_overlapping_reads_by_different_tools_show_what_is_new(sandbox: Sandbox) -> None:
    bash(sandbox, "sed -n '1,25p' sub/g")
    out = bash(sandbox, "head -n 35 sub/g").splitlines(keepends=True)
    assert out[0].startswith("[UNCHANGED ")
    assert "".join(out[1:]) == "".join(OTHER.splitlines(keepends=True)[25:35])


def test_what_was_changed_meanwhile_is_shown(sandbox: Sandbox) -> None:
    bash(sandbox, "cat sub/g")
    changed = OTHER.upper()
    (sandbox.directory / "sub" / "g").write_text(changed)
    assert bash(sandbox, "cat sub/g") == changed


def test_no_marker_points_at_a_read_of_the_same_command(sandbox: Sandbox) -> None:
    assert bash(sandbox, "cat sub/g; cat sub/g; for x in 1 2; do cat sub/g; done") == OTHER * 4
    assert bash(sandbox, "cat sub/g").startswith(MARKER)


def test_no_marker_points_at_a_read_of_a_command_that_the_model_called_at_once(sandbox: Sandbox) -> None:
    """The later of two parallel commands reads when the other one has ended: its model has not seen that result."""
    gate = sandbox.directory / "gate"
    os.mkfifo(gate)
    words = ["bash", "-c", "read -r x <gate; cat sub/g"]
    env = sandbox.by_bash_env()
    with subprocess.Popen(words, env=env, cwd=sandbox.directory, stdout=subprocess.PIPE, text=True) as parallel:
        with gate.open("w") as opened:
            assert bash(sandbox, "head -n 35 sub/g").count("\n") == 35
            opened.write("go\n")
        out, _ = parallel.communicate()
    gate.unlink()
    assert out == OTHER
    assert bash(sandbox, "cat sub/g").startswith(MARKER)


def test_what_did_not_reach_the_agent_was_not_seen(sandbox: Sandbox) -> None:
    for command in ("cat sub/g >out", "cat sub/g | wc", "x=$(cat sub/g)", "cat sub/g >/dev/null", "./script >out"):
        bash(sandbox, command)
    assert bash(sandbox, "cat sub/g") == OTHER
    (sandbox.directory / "h").write_text(OTHER.upper())
    subprocess.run(["bash", "-c", "cat h"], env=sandbox.by_bash_env(), cwd=sandbox.directory, stdout=subprocess.DEVNULL)
    assert bash(sandbox, "cat h") == OTHER.upper()


def test_a_pipe_that_nobody_reads_ends_the_tool_as_it_always_does(sandbox: Sandbox) -> None:
    read, write = os.pipe()
    os.close(read)
    words = ["bash", "-c", "cat sub/g; echo $? >&2"]
    for env in (sandbox.by_bash_env(), sandbox.env()):
        done = subprocess.run(words, env=env, cwd=sandbox.directory, stdout=write, stderr=subprocess.PIPE)
        assert done.stderr.startswith(b"141")
    os.close(write)
    assert bash(sandbox, "cat sub/g") == OTHER  # and was not seen


# ------------------------------------------------------------ what a harness parses

SUBMITS = (
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat f",
    "echo MINI_SWE_AGENT_FINAL_OUTPUT; cat f; true",
    "echo '<<SWE_AGENT_SUBMISSION||'; cat f; echo '||SWE_AGENT_SUBMISSION>>'",
    "submit() { cat f; }\nsubmit",
)


@pytest.mark.parametrize("command", SUBMITS)
def test_an_answer_is_never_touched(sandbox: Sandbox, command: str) -> None:
    assert Policy().forbids(command)
    plain = start(["bash", "-c", command], sandbox.env(), "pipe", sandbox.directory).out.decode()
    assert bash(sandbox, command) == plain
    record = f". {sandbox.shims}/agent-shell.sh; "
    assert start(["sh", "-c", record + command], sandbox.readcache(), "pipe", sandbox.directory).out.decode() == plain
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))
    assert start(["bash", "-c", command], env, "pipe", sandbox.directory).out.decode() == plain


def test_every_submit_command_has_its_example() -> None:
    assert all(any(Policy(never=(pattern,)).forbids(command) for command in SUBMITS) for pattern in SUBMIT_COMMANDS)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_an_answer_printed_by_a_program_that_the_shell_became_is_never_touched(sandbox: Sandbox, shell: str) -> None:
    """`sh -c ./answer` becomes the program: it has the shell's pid and stdout, and finds the shims on PATH."""
    (sandbox.directory / "answer").write_text("#!/bin/sh\ncat f\n")
    (sandbox.directory / "answer").chmod(0o755)
    env = sandbox.readcache(PATH=f"{sandbox.shims}:{sandbox.env()['PATH']}")
    command = f". {sandbox.shims}/agent-shell.sh; exec ./answer"
    assert start([shell, "-c", command], env, "pipe", sandbox.directory).out.decode() == LINES


# ------------------------------------------------------------ settings


def test_without_readcache_on_the_shims_only_advise(sandbox: Sandbox) -> None:
    for way in ("agent-shell.sh", "agent-command.sh"):
        env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
        del env["READCACHE"]
        for _ in range(2):
            assert start(["bash", "-c", "cat f"], env, "pipe", sandbox.directory).out.decode() == LINES
    assert json.loads(readcache(sandbox, "stats", "--json"))["advised"] >= 2


@pytest.mark.parametrize(
    "more", [{"READCACHE": "off"}, {"READCACHE": "0"}, {"READCACHE": "nonsense"}, {"READCACHE_SESSION": ""}]
)
def test_switched_off_every_byte_comes_and_nothing_is_recorded(sandbox: Sandbox, more: dict[str, str]) -> None:
    before = sandbox.store.read_bytes()
    assert bash(sandbox, "cat f; cat f", **more) == LINES * 2
    assert sandbox.store.read_bytes() == before


def test_from_readcache_off_to_readcache_on_every_byte_comes_and_nothing_is_recorded(sandbox: Sandbox) -> None:
    before = sandbox.store.read_bytes()
    readcache(sandbox, "off")
    try:
        assert bash(sandbox, "cat f; cat f") == LINES * 2
        env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))
        assert start(["bash", "-c", "nl -ba f"], env, "pipe", sandbox.directory).out.decode().endswith(LINES[-20:])
        assert sandbox.store.read_bytes() == before
    finally:
        readcache(sandbox, "on")
    assert bash(sandbox, "cat f").startswith("[FILE_UNCHANGED ")


def test_under_a_clip_only_the_whole_command_way_leaves_lines_out(sandbox: Sandbox) -> None:
    """`cat a; cat b` may come as the head of one and the tail of the other: a single tool cannot know."""
    assert bash(sandbox, "cat f", READCACHE_CLIP="5000,5000") == LINES
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"), READCACHE_CLIP="100,100")
    for command in ("cat sub/g", "sed -n '10,30p' sub/g"):  # what the second one asks for was cut away before
        out = start(["bash", "-c", command], env, "pipe", sandbox.directory).out.decode()
    assert out == "".join(OTHER.splitlines(keepends=True)[9:30])
    assert start(["bash", "-c", "cat f"], env, "pipe", sandbox.directory).out.decode().startswith(MARKER)


def test_after_a_compaction_everything_is_shown(sandbox: Sandbox) -> None:
    assert bash(sandbox, "cat f").startswith(MARKER)
    readcache(sandbox, "compacted")
    assert bash(sandbox, "cat f") == LINES


def test_another_agent_of_the_session_has_seen_nothing(sandbox: Sandbox) -> None:
    """Sub-agents' shells reach the shims as well, each with its own context."""
    assert bash(sandbox, "cat f", READCACHE_AGENT="helper") == LINES
    assert bash(sandbox, "cat f", READCACHE_AGENT="helper").startswith(MARKER)


def test_reads_of_one_file_by_any_name_are_one(sandbox: Sandbox) -> None:
    bash(sandbox, "cat sub/g")
    assert bash(sandbox, "cd sub && cat ./../sub//g").startswith(MARKER)


def test_a_failing_store_shows_everything_and_is_noted(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    more = {"READCACHE_STORE": str(sandbox.directory / "f" / "x.db"), "XDG_STATE_HOME": str(tmp_path)}
    assert bash(sandbox, "cat f; cat f; exit 3", **more) == LINES * 2
    assert ": store_failed: " in failures.noted()[0]


def test_a_shell_inside_readcache_run_is_not_the_agents(sandbox: Sandbox) -> None:
    env = sandbox.by_bash_env(PYTHONPATH=str(ROOT))
    command = f"{sys.executable} -m readcache run -c 'cat f | tail -n 3; cat f >out'"
    out = start(["bash", "-c", command + "; cat out | wc -l"], env, "pipe", sandbox.directory).out.decode()
    assert out.endswith("60\n")
    assert (sandbox.directory / "out").read_text() == LINES


def test_a_timeout_of_the_harness_ends_the_tool(sandbox: Sandbox) -> None:
    command = "sed '1e sleep 30' f; true"
    words = ["timeout", "0.5", "bash", "-c", command]
    ours, plain = sandbox.run(words, sandbox.by_bash_env()), sandbox.run(words, sandbox.env())
    assert ours.status == plain.status == 124


@pytest.mark.parametrize("words", [["bash", "run"], ["sh", "run"], ["sh", "-eu", "run"]])
def test_a_script_is_not_the_agents_own_command(sandbox: Sandbox, words: list[str]) -> None:
    """What else it prints, a harness may parse."""
    (sandbox.directory / "run").write_text(f". {sandbox.shims}/agent-shell.sh\necho '<<'; cat f; echo '>>'\n")
    for env in (sandbox.by_bash_env(), sandbox.readcache()):
        assert start(words, env, "pipe", sandbox.directory).out.decode() == f"<<\n{LINES}>>\n"


def test_where_no_more_processes_are_allowed_the_tool_itself_still_runs(sandbox: Sandbox) -> None:
    code = (
        "import os, sys; from readcache.cli import shim_run as run\n"
        "def fail(*a, **k): raise BlockingIOError\n"
        "os.fork = fail\n"
        "sys.exit(run.run_shim('', 'cat', ['f']))"
    )
    env = {**sandbox.readcache(PYTHONPATH=str(ROOT)), "READCACHE_SINK": f"{os.getpid()} mnt_id:1 ino:1 shell bash"}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=sandbox.directory, capture_output=True)
    assert (done.stdout.decode(), done.returncode) == (LINES, 0)


@pytest.mark.parametrize("way", ["agent-shell.sh", "agent-command.sh"])
def test_where_memory_is_limited_there_is_room_for_the_tool_alone(sandbox: Sandbox, way: str) -> None:
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
    words = ["sh", "-c", "ulimit -v 9000; exec bash -c 'cat f; cat sub/g; :'"]
    assert start(words, env, "merged", sandbox.directory).out.decode() == LINES + OTHER


def test_what_shims_answered_is_of_the_host_shims(sandbox: Sandbox) -> None:
    bash(sandbox, "cat sub/g")
    said = json.loads(readcache(sandbox, "gain", "--json", "--session", "s"))
    assert "shims" in said["by_host"]
