"""The failures of other projects' shims and shell hooks, one by one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.shims.sandbox import LINES, OTHER, ROOT, Sandbox, start

MARKER = "[FILE_UNCHANGED "


@pytest.fixture(autouse=True)
def _fresh(sandbox: Sandbox) -> None:
    sandbox.reset()


def bash(sandbox: Sandbox, command: str, **more: str) -> str:
    return start(["bash", "-c", command], sandbox.by_bash_env(**more), "merged", sandbox.directory).out.decode()


def whole(sandbox: Sandbox, command: str) -> str:
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"))
    return start(["bash", "-c", command], env, "merged", sandbox.directory).out.decode()


def test_a_read_by_sed_is_recorded_as_a_read(sandbox: Sandbox) -> None:
    """Reads by `sed -n` were not seen."""
    bash(sandbox, "sed -n '1,40p' sub/g")
    assert bash(sandbox, "sed -n '5,35p' sub/g").startswith("[UNCHANGED ")


def test_only_the_lines_that_were_printed_are_credited(sandbox: Sandbox) -> None:
    """`head` was credited with the whole file. Lines were not guessed, so that nothing was credited."""
    bash(sandbox, "head -n 20 sub/g")
    bash(sandbox, "tail -n +38 sub/g")
    out = bash(sandbox, "cat sub/g")
    assert "".join(OTHER.splitlines(keepends=True)[20:37]) in out


def test_a_write_that_no_parser_sees_costs_no_byte(sandbox: Sandbox) -> None:
    """Most writes were by programs that no parser sees."""
    bash(sandbox, "cat sub/g")
    bash(sandbox, "python3 -c 'import pathlib; p = pathlib.Path(\"sub/g\"); p.write_text(p.read_text().upper())'")
    assert bash(sandbox, "cat sub/g") == OTHER.upper()


def test_a_read_with_redirections_beside_it_stays_a_read(sandbox: Sandbox) -> None:
    """Reads counted as writes and emptied the cache. `2>&1`, quoted `>` and heredocs were taken for writes."""
    for command in ("cat f 2>&1", "cat f 2>/dev/null || echo '>'", "cat <<<x >/dev/null; cat f"):
        assert MARKER in bash(sandbox, command)
        assert bash(sandbox, command).endswith(LINES)


@pytest.mark.parametrize("options", ["-A", "-v", "-e", "-s", "-b", "-E"])
def test_options_that_change_the_bytes_print_what_the_real_tool_prints(sandbox: Sandbox, options: str) -> None:
    """`cat -A` meant something else in the replacement."""
    (sandbox.directory / "odd").write_bytes(b"\ttab\x01\n\n\n" * 60)
    bash(sandbox, "cat odd")
    real = start(["cat", options, "odd"], sandbox.env(), "pipe", sandbox.directory).out.decode()
    assert bash(sandbox, f"cat {options} odd") == real


def test_cat_of_several_files_shows_each(sandbox: Sandbox) -> None:
    """`cat` of several files became a command of one."""
    assert bash(sandbox, "cat sub/g sub/g") == OTHER * 2
    assert bash(sandbox, "cat sub/g nosuch; echo $?") == f"{OTHER}cat: nosuch: No such file or directory\n1\n"


def test_a_read_is_cut_under_a_bare_path_and_in_a_failing_command(sandbox: Sandbox) -> None:
    """A short PATH or a failing command lost the rewrite."""
    assert MARKER in bash(sandbox, "cat f; exit 3", PATH="/usr/bin:/bin")


def test_no_read_is_ever_refused(sandbox: Sandbox) -> None:
    """A read was refused, in a loop. A refusal blocked edits and parallel reads."""
    outs = [bash(sandbox, "cat f") for _ in range(6)]
    assert outs[1::2] == [LINES] * 3


def test_a_read_redirected_into_a_file_has_every_byte(sandbox: Sandbox) -> None:
    """Output into a file was shortened on disk."""
    bash(sandbox, "cat f >out; cat f | tee out2 >/dev/null; exec >out3; cat f")
    assert {(sandbox.directory / name).read_text() for name in ("out", "out2", "out3")} == {LINES}


def test_off_is_off_in_every_layer(sandbox: Sandbox) -> None:
    """The next layer did not see that it was switched off."""
    assert bash(sandbox, "cat f", READCACHE="off") == LINES
    assert bash(sandbox, "READCACHE=off cat f") == LINES
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-command.sh"), READCACHE="off")
    assert start(["bash", "-c", "cat f"], env, "pipe", sandbox.directory).out.decode() == LINES


def test_a_filter_gets_the_real_bytes(sandbox: Sandbox) -> None:
    """A filter in the pipeline got the shortened text."""
    for way in (bash, whole):
        assert way(sandbox, "cat f | grep -c shown") == "60\n"
        assert way(sandbox, "nl -ba f | sed -n '7p'") == f"     7\t{LINES.splitlines()[6]}\n"


def test_a_read_piped_into_head_gives_heads_line(sandbox: Sandbox) -> None:
    """A shim before `head` printed nothing."""
    assert bash(sandbox, "cat f | head -n 1; echo ${PIPESTATUS[1]}") == LINES.splitlines()[0] + "\n0\n"
    big = "for x in 1 2 3 4 5 6 7 8; do cat f f f f f f f f f f; done | head -n 1"
    assert bash(sandbox, big) == LINES.splitlines()[0] + "\n"


def test_failures_keep_their_text_and_status(sandbox: Sandbox) -> None:
    """Failures lost their text or their status."""
    for command in ("cat nosuch", "sed -n 'nonsense' f", "head -n x f", "cat sub", "sed -n '5q7' f"):
        ours, plain = (
            start(["bash", "-c", f"{command}; exit $?"], env, "merged", sandbox.directory)
            for env in (sandbox.by_bash_env(), sandbox.env())
        )
        assert (ours.out, ours.status) == (plain.out, plain.status)


def test_a_shim_does_not_depend_on_home(sandbox: Sandbox) -> None:
    """A shim that found itself through a changed HOME: ours does not know HOME."""
    for name in (".tool/cat" if sandbox.has_client else "cat", "agent-shell.sh", "agent-command.sh"):
        text = (sandbox.shims / name).read_text()
        assert "HOME" not in text
        assert "~" not in text


def test_the_shell_of_a_subagent_has_its_own_context(sandbox: Sandbox) -> None:
    """Sub-agents' shells had no context of their own."""
    assert bash(sandbox, "cat f", READCACHE_AGENT="helper") == LINES
    assert bash(sandbox, "cat f", READCACHE_AGENT="helper").startswith(MARKER)
    env = {**sandbox.readcache(), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "readcache", "stats", "--json", "--agent", "helper"]
    assert json.loads(subprocess.run(words, env=env, capture_output=True, check=True).stdout)["calls"] == 2


def test_one_file_has_one_name_and_two_files_have_two(sandbox: Sandbox) -> None:
    """One file had two names, or two files one."""
    bash(sandbox, "cat sub/g")
    assert bash(sandbox, "cd sub && cat ./../sub//g").startswith(MARKER)
    (sandbox.directory / "sub" / "G").write_text(LINES.upper())
    assert bash(sandbox, "cat sub/G") == LINES.upper()
