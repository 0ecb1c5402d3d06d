"""What a shim costs: a call that passes through, and a read that the agent sees, beside the native tool.

python tests/benchmarks/shims.py [--short] [--check]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from measuring import Table, in_turns, main, quartiles, source

from readcache import Session
from readcache.cli import shim_files
from readcache.cli.shim_files import find_client

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As pyenv's: a bash script that starts another, which asks a third for the version, and looks the program up on PATH.
PYENV = {
    "cat": '#!/usr/bin/env bash\nset -e\nexec "{top}/exec" "${{0##*/}}" "$@"\n',
    "exec": (
        '#!/usr/bin/env bash\nset -e\nversion=$("{top}/version")\nprogram=$1\nshift\n'
        'for place in ${{PATH//:/ }}; do\n  if [ "$place" != "{top}" ] && [ -x "$place/$program" ]; then\n'
        '    exec "$place/$program" "$@"\n  fi\ndone\nexit 127\n'
    ),
    "version": "#!/usr/bin/env bash\necho system\n",
}


def measure(chosen: argparse.Namespace, table: Table) -> None:
    rounds = 60 if chosen.short else 400
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        file = top / "f.py"
        file.write_text("".join(line + "\n" for line in source(random.Random(1), 150)))
        passes_through(top, file, rounds, table)
        passes_through_in_bash(top, file, max(5, rounds // 20), table)
        faces_the_agent(top, file, max(10, rounds // 8), table)


def install(directory: Path, client: str = "") -> Path:
    shim_files.write(str(directory), shim_files.DEFAULT_TOOLS, client)
    return directory


def passes_through(top: Path, file: Path, rounds: int, table: Table) -> None:
    """`cat f` into a pipe that is not what the agent reads, as in `cat f | head`, called by the agent's own shell."""
    sink = f"{os.getpid()} mnt_id:0 ino:0 command bash"
    sides: list[tuple[str, Path, float | None]] = [("sh", install(top / "sh"), 2.0)]
    if client := find_client():
        sides.append(("client", install(top / "client", client), 1.15))
    bare = top / "bare"  # what any script costs
    bare.mkdir()
    (bare / "cat").write_text('#!/bin/sh\nexec /bin/cat "$@"\n')
    (bare / "cat").chmod(0o755)
    sides.append(("a script of exec alone", bare, None))
    pyenv = top / "pyenv"
    pyenv.mkdir()
    for name, text in PYENV.items():
        (pyenv / name).write_text(text.format(top=pyenv))
        (pyenv / name).chmod(0o755)
    sides.append(("pyenv-style", pyenv, None))
    for name, directory, most in sides:
        env = {"PATH": f"{directory}:{PATH}", "READCACHE_SINK": sink}

        def ours(directory: Path = directory, env: Mapping[str, str] = env) -> None:
            output([str(directory / "cat"), str(file)], env)

        wall, cpu = in_turns(ours, lambda env=env: output(["/bin/cat", str(file)], env), rounds)  # type: ignore[misc]
        note = f"quartiles {quartiles(wall)}, processor {statistics.median(cpu):.3f}"
        table.row(f"pass-through, {name}", statistics.median(wall), note, most=most)


def passes_through_in_bash(top: Path, file: Path, rounds: int, table: Table) -> None:
    """The same a hundred times in the agent's own bash."""
    base = {"PATH": PATH, "HOME": str(top)}
    for name, most in (("sh", 2.0), ("client", 1.15)):
        if not (top / name).exists():
            continue
        named = {"READCACHE_SESSION": "s", "READCACHE_STORE": str(top / "unused.db")}
        env = {**base, **named, "BASH_ENV": str(top / name / "agent-shell.sh")}
        for command in ("x=$(cat {0})", "cat {0} | head -n 1", "cat {0} >{0}.copy"):
            words = ["bash", "-c", f"for i in {{1..100}}; do {command.format(file)}; done >{file}.out"]

            def ours(words: list[str] = words, env: Mapping[str, str] = env) -> None:
                output(words, env)

            wall, cpu = in_turns(ours, lambda words=words: output(words, base), rounds)  # type: ignore[misc]
            note = f"processor {statistics.median(cpu):.3f}"
            table.row(f"in bash, {name}: {command.format('f')}", statistics.median(wall), note, most=most)


def faces_the_agent(top: Path, file: Path, rounds: int, table: Table) -> None:
    """`bash -c 'cat f'` whose stdout the agent reads: a first read, and one that is cut."""
    base = {"PATH": PATH, "HOME": str(top), "READCACHE_SERVER": "off"}
    for name, sourced, most in (("per tool", "agent-shell.sh", 90), ("whole command", "agent-command.sh", None)):
        shims = {**base, "BASH_ENV": str(top / "sh" / sourced), "READCACHE": "on"}
        sessions = iter(range(10**6))

        def first() -> None:
            env = {**shims, "READCACHE_SESSION": f"{name} {next(sessions)}", "READCACHE_STORE": str(top / "first.db")}  # noqa: B023
            assert len(output(["bash", "-c", f"cat {file}"], env)) == file.stat().st_size

        stored = str(top / f"{name}.db")
        with Session(top, session_id="s", store=stored) as session:
            session.observe(f"cat {file}", file.read_text())

        def again() -> None:
            shutil.copy(stored, top / "again.db")  # noqa: B023  or the second request would be answered in full
            env = {**shims, "READCACHE_SESSION": "s", "READCACHE_STORE": str(top / "again.db")}  # noqa: B023
            assert output(["bash", "-c", f"cat {file}"], env).startswith(b"[FILE_UNCHANGED ")

        for what, way in (("shown", first), ("cut", again)):
            took = milliseconds(way, rounds)
            native = statistics.median(milliseconds(lambda: output(["bash", "-c", f"cat {file}"], base), rounds))
            note = f"quartiles {quartiles(took)}, native {native:.1f} ms"
            table.row(f"direct read, {name}, {what}", statistics.median(took), note, most=most, unit="ms")


def milliseconds(way: Callable[[], object], rounds: int) -> list[float]:
    took = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        way()
        took.append((time.perf_counter() - began) * 1000)
    return took[1:]


def output(words: list[str], env: Mapping[str, str]) -> bytes:
    """What a program prints; with less between than `subprocess` has."""
    mine, theirs = os.pipe()
    pid = os.posix_spawnp(words[0], words, env, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
    os.close(theirs)
    with open(mine, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return data


if __name__ == "__main__":
    main(__doc__, measure)
