"""Which bash is the agent's, of all that read the shims' file by BASH_ENV: a marker is for the agent's eyes alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import LINES, STDOUTS, Sandbox, no_shell_above, script, start

WAYS = ["agent-shell.sh", "agent-command.sh"]
# What an agent's command may do with a bash of its own; all of it lands in `out`.
INNER = {
    "file": "bash -c 'cat f; :' >out",
    "append": "bash -c 'cat f; :' >>out",
    "the shell's own place": "exec bash -c 'cat f; :' >out",
    "substitution": "x=$(bash -c 'cat f; :'); echo \"$x\" >out",
    "pipe": "bash -c 'cat f; :' | cat >out",
    "subshell": "(cd . && bash -c 'cat f; :') | cat >out",
    "fifo": "mkfifo p; bash -c 'cat f; :' >p & cat p >out; rm p",
    "login": "bash -lc 'cat f; :' | cat >out",
    "options": "bash -o pipefail -c 'cat f; :' | cat >out",
    "commands on stdin": "echo 'cat f' | bash | cat >out",
    "commands on stdin, -s": "echo 'cat f' | bash -s | cat >out",
    "tee": "bash -c 'cat f' | tee out >/dev/null",
    "timeout": "timeout 600 bash -c 'cat f; :' | cat >out",
    "env": "env X=y bash -c 'cat f; :' | cat >out",
    "nohup": "nohup bash -c 'cat f; :' 2>/dev/null | cat >out",
    "detached": "{ setsid -f bash -c 'cat f; :'; } | cat >out",
    "find": "find f -exec bash -c 'cat f; :' \\; | cat >out",
    "xargs": "echo f | xargs -I{} bash -c 'cat {}; :' | cat >out",
    "awk": 'awk \'BEGIN { system("bash -c \\"cat f; :\\"") }\' | cat >out',
    "python": 'python3 -c \'import subprocess as s; s.run(["bash", "-c", "cat f; :"])\' | cat >out',
    "python captures": 'python3 -c \'import subprocess as s; print(s.getoutput("bash -c \\"cat f; :\\""))\' >out; :',
    "script with a name of its own": "./build | cat >out",
    "script alone": "./build >out",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("outer", ["sh", "bash"])
@pytest.mark.parametrize("inner", INNER)
def test_a_bash_of_the_agents_own_never_prints_a_marker_into_a_file_or_a_program(
    sandbox: Sandbox, way: str, outer: str, inner: str
) -> None:
    """Also where the harness starts `sh -c`, which reads no BASH_ENV and hands it on."""
    sandbox.reset()
    script(sandbox.directory / "build", "#!/bin/sh\nbash -c 'cat f; :'\n")
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
    start([outer, "-c", INNER[inner]], env, "merged", sandbox.directory)
    assert (sandbox.directory / "out").read_text() == LINES


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", ["make -s", "make -s >log", "make -s | cat >log", "cd . && make -s"])
def test_a_make_whose_shell_is_bash_reads_every_byte(sandbox: Sandbox, way: str, call: str) -> None:
    sandbox.reset()
    text = (
        'SHELL = /bin/bash\nX := $(shell cat f; :)\nall:\n\techo "$(words $(X))" >words\n\tcat f >copy; :\n\tcat f; :\n'
    )
    (sandbox.directory / "Makefile").write_text(text)
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
    start(["sh", "-c", call], env, "merged", sandbox.directory)
    assert (sandbox.directory / "words").read_text() == f"{len(LINES.split())}\n"
    assert (sandbox.directory / "copy").read_text() == LINES
    if (sandbox.directory / "log").exists():
        assert (sandbox.directory / "log").read_text() == LINES


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stdout", STDOUTS)
def test_only_what_goes_to_a_pipe_a_socket_or_a_terminal_may_be_cut(sandbox: Sandbox, way: str, stdout: str) -> None:
    """A file is read by whoever likes to. On a terminal a whole command is left alone, for its prompts and colours."""
    sandbox.reset()
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
    out = start(["bash", "-c", "cat f; :"], env, stdout, sandbox.directory).out.decode()
    assert (LINES in out.replace("\r\n", "\n")) == (stdout == "file" or (stdout, way) == ("pty", WAYS[1]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "words", [["timeout", "600"], ["env", "A=b"], ["setsid", "-w"], ["nice"], ["sh", "-c", 'exec "$@"', "-"]]
)
def test_what_a_harness_puts_in_front_of_bash_changes_nothing(sandbox: Sandbox, way: str, words: list[str]) -> None:
    sandbox.reset()
    env = sandbox.readcache(BASH_ENV=str(sandbox.shims / way))
    assert LINES not in start([*words, "bash", "-c", "cat f; :"], env, "pipe", sandbox.directory).out.decode()


@pytest.mark.parametrize("exported", [True, False])
def test_on_a_terminal_a_person_may_try_it_in_a_shell_of_their_own(sandbox: Sandbox, exported: bool) -> None:
    """That shell got the variables afterwards. One that has had them from the beginning may be a harness's `sh -c`."""
    sandbox.reset()
    named = sandbox.readcache(BASH_ENV=str(sandbox.shims / "agent-shell.sh"))
    exports = "".join(f"export {name}='{value}'; " for name, value in named.items() if name not in sandbox.env())
    (sandbox.directory / "try").write_text(f"{exports}bash -c 'cat f; :'; bash -c 'cat f; :' | cat >out; exit\n")
    words = ["sh", "-c", ". ./try", "x"]
    out = start(words, sandbox.env() if exported else named, "pty", sandbox.directory).out.decode()
    assert (LINES in out.replace("\r\n", "\n")) != exported
    assert (sandbox.directory / "out").read_text() == LINES


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setsid") is None, reason="no setsid here")
@pytest.mark.parametrize("end", [">out", "| cat >out"])
def test_a_login_shell_that_lost_its_parent_is_not_the_harnesss(sandbox: Sandbox, tmp_path: Path, end: str) -> None:
    """Whoever adopts it does not hold what it prints to; no shell is above it any more."""
    sandbox.reset()
    home = tmp_path / "home"
    named = {name: value for name, value in sandbox.readcache().items() if name.startswith("READCACHE")}
    exports = "".join(f"export {name}='{value}'\n" for name, value in named.items())
    script(home / ".profile", f"{exports}. '{sandbox.shims}/agent-shell.sh'\n")
    again = 'env -i HOME="$HOME" PATH="$PATH" bash -lc "cat f; :"'
    wait = "i=0; until cmp -s f out || [ $i -gt 600 ]; do sleep 0.05; i=$((i+1)); done"
    command = f"setsid -f {again} {end}; {wait}; cat f; :"
    harness = (
        "import subprocess, sys\n"
        "print(subprocess.run(['bash', '-lc', sys.argv[1]], stdout=subprocess.PIPE).stdout.decode())\n"
    )
    words = [*no_shell_above(), "env", "-i", f"HOME={home}", "PATH=/usr/bin:/bin", shutil.which("python3") or ""]
    out = subprocess.run([*words, "-c", harness, command], cwd=sandbox.directory, capture_output=True, timeout=WATCHDOG)
    assert (sandbox.directory / "out").read_text() == LINES
    assert out.stdout
    assert LINES not in out.stdout.decode()
