"""What a call costs by the client of a server, beside the native tool: a read that the agent sees, a command that reads
nothing, and a server that is not there, or does not answer.

python tests/benchmarks/client.py [--short] [--check]
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import itertools
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from measuring import Table, in_turns, main, quartiles, source

from readcache.cli.shim_files import find_client
from readcache.serve.address import socket_path
from shims import PATH, install, milliseconds, output

ROOT = Path(__file__).resolve().parents[2]


def measure(chosen: argparse.Namespace, table: Table) -> None:
    client = find_client()
    if not client:
        return
    rounds = 60 if chosen.short else 400
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        shims = install(top / "shims", client)
        env = {"PATH": PATH, "HOME": str(top), "READCACHE": "on", "READCACHE_SESSION": "s"}
        env["READCACHE_STORE"] = str(top / "store.db")
        with serving(top, env):
            reads(top, shims, env, rounds, table)
            whole_commands(top, shims, env, rounds, table)
        without_a_server(top, shims, env, max(10, rounds // 10), table)
        does_not_answer(top, shims, env, max(10, rounds // 10), table)


def socket_of(top: Path) -> Path:
    return Path(socket_path(str(top / ".local/state/readcache"), str(top / "store.db")))


@contextlib.contextmanager
def serving(top: Path, env: Mapping[str, str]) -> Iterator[None]:
    words = [sys.executable, "-m", "readcache", "serve", "--on-demand"]
    with subprocess.Popen(words, env={**env, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL) as server:
        try:
            while not socket_of(top).is_socket():
                time.sleep(0.05)
            time.sleep(1)  # it loads the rest
            yield
        finally:
            server.terminate()


def reads(top: Path, shims: Path, env: Mapping[str, str], rounds: int, table: Table) -> None:
    """`cat` of 150 lines, called by this process as the agent's shell, which has the agent's pipe for its stdout."""
    numbers, now = itertools.count(), [top]

    def session() -> dict[str, str]:
        """One for 100 files: in a context of a million tokens an omission would be worth less than a turn."""
        return {**env, "READCACHE_SESSION": f"s{now[0].stem[1:-2]}"}

    for what in ("shown", "cut"):
        printed, in_time = [b""], [0]

        def ours() -> None:
            printed[0] = seen(str(shims / "cat"), now[0], session())  # noqa: B023

        def native() -> None:
            seen("/bin/cat", now[0], env)

        def between() -> None:
            was_shortened = printed[0].startswith(b"[FILE_UNCHANGED ")  # noqa: B023
            in_time[0] += bool(printed[0]) and was_shortened == (what == "cut")  # noqa: B023
            now[0] = top / f"f{next(numbers)}.py"
            now[0].write_text("".join(line + "\n" for line in source(random.Random(str(now[0])), 150)))
            if what == "cut":  # noqa: B023
                seen(str(shims / "cat"), now[0], session())

        wall, _ = in_turns(ours, native, rounds, between)
        note = f"quartiles {quartiles(wall)}, as it should be {in_time[0]} of {rounds + 1}"
        table.row(f"a read, {what}", statistics.median(wall), note, most=2.5)
        if in_time[0] < rounds * 9 // 10:
            sys.exit(f"a read, {what}: {note}: these are not the times of what they are called")


def seen(program: str, file: Path, env: Mapping[str, str]) -> bytes:
    mine, theirs = os.pipe()
    with open(f"/proc/self/fdinfo/{theirs}", encoding="ascii") as info:
        facts = dict(line.split(":\t") for line in info.read().splitlines())
    sink = f"{os.getpid()} mnt_id:{facts['mnt_id']} ino:{facts['ino']} shell bash"
    kept = os.dup(1)
    os.dup2(theirs, 1)
    os.close(theirs)
    try:
        os.waitpid(os.posix_spawn(program, ["cat", str(file)], {**env, "READCACHE_SINK": sink}), 0)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    with open(mine, "rb") as pipe:
        return pipe.read()


def whole_commands(top: Path, shims: Path, env: Mapping[str, str], rounds: int, table: Table) -> None:
    run = str(shims / "readcache-run")
    file = top / "f0.py"
    for what, command, most in (
        ("reads nothing", "true", 1.3),
        ("reads nothing, and prints", "echo one; echo two", 1.3),
        ("reads a file", f"head -n 40 {file}", None),
    ):
        wall, _ = in_turns(
            lambda command=command: output([run, "-c", command], env),  # type: ignore[misc]
            lambda command=command: output(["bash", "-c", command], env),  # type: ignore[misc]
            rounds,
        )
        table.row(f"readcache-run, {what}", statistics.median(wall), f"quartiles {quartiles(wall)}", most=most)


def without_a_server(top: Path, shims: Path, env: Mapping[str, str], rounds: int, table: Table) -> None:
    """Beside the scripts, which ask nobody. None is started here: its lock is held, as if one were on its way."""
    scripts = install(top / "scripts")
    socket_of(top).unlink(missing_ok=True)
    sessions = iter(range(10**6))

    def read(shims: Path) -> None:
        named = {**env, "BASH_ENV": str(shims / "agent-shell.sh"), "READCACHE_SESSION": str(next(sessions))}
        output(["bash", "-c", f"cat {top}/f0.py; :"], named)

    with open(f"{socket_of(top)}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wall, _ = in_turns(lambda: read(shims), lambda: read(scripts), rounds)
    table.row("a read without a server", statistics.median(wall), f"quartiles {quartiles(wall)}", most=1.2)


def does_not_answer(top: Path, shims: Path, env: Mapping[str, str], rounds: int, table: Table) -> None:
    for what, queue in (("hangs", 64), ("is full", 0)):
        with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as until_then:
            socket_of(top).unlink(missing_ok=True)
            listener.bind(str(socket_of(top)))
            listener.listen(queue)
            for _ in range(8 if not queue else 0):
                waiting = until_then.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    waiting.connect(str(socket_of(top)))
            took = milliseconds(lambda: seen(str(shims / "cat"), top / "f0.py", env), rounds)
            native = statistics.median(milliseconds(lambda: seen("/bin/cat", top / "f0.py", env), rounds))
        note = f"quartiles {quartiles(took)}, native {native:.1f} ms"
        table.row(f"a read where the server {what}", statistics.median(took) - native, note, most=60, unit="ms")


if __name__ == "__main__":
    main(__doc__, measure)
