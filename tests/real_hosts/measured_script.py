"""One conversation, held with several hosts without readcache and with it, to be measured."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from readcache.testing.conformance import make_project
from readcache.testing.hosts import Bash, Edit, Read, Seen, Step
from tests.real_hosts.measured import Run, compare

STEPS: tuple[Step, ...] = (
    (Bash("ls -la"),),
    (Read("shop.py"),),
    (Bash("grep -n 'number 3' shop.py"), Bash("cat crlf.txt")),
    (Bash("sed -n '10,50p' shop.py"),),
    (Read("shop.py", 20, 60),),
    (Edit("shop.py", "number 7 of", "number seven of"),),
    (Bash("cat shop.py"),),
    (Read("shop.py", 30, 60),),
    (Bash("sed -n '1,200p' long.txt"),),
    (Bash("sed -n '100,240p' long.txt"),),
    (Bash("cat crlf.txt"),),
    (Bash("cat shop.py"),),
)
CALLS = sum(len(step) for step in STEPS if isinstance(step, tuple))

# A shorter one.
SHORT_STEPS: tuple[Step, ...] = (
    (Read("shop.py"),),
    (Bash("grep -n 'number 3' shop.py"),),
    (Bash("sed -n '10,50p' shop.py"),),
    (Read("shop.py", 20, 60),),
    (Edit("shop.py", "number 7 of", "number seven of"),),
    (Bash("cat shop.py"),),
    (Read("shop.py", 30, 60),),
    (Bash("cat crlf.txt"),),
    (Read("crlf.txt"),),
)


def result_chars(seen: Sequence[Seen]) -> int:
    """The characters of all results in all requests of a conversation whose list only grows, with these results."""
    sizes = [sum(map(len, one.results)) for one in seen]
    return sum(size * (len(sizes) - at) for at, size in enumerate(sizes))


def with_a_shell_alone(step: Step) -> Step:
    """The step for a host that has no other tools."""
    assert isinstance(step, tuple)
    return tuple(_as_command(use) for use in step if isinstance(use, (Bash, Read, Edit)))


def _as_command(use: Bash | Read | Edit) -> Bash:
    if isinstance(use, Read):
        return Bash(f"sed -n '{use.start},{use.end or '$'}p' {use.path}")
    return Bash(f"sed -i 's/{use.old}/{use.new}/' {use.path}") if isinstance(use, Edit) else use


def measure(name: str, package: str, run_steps: Callable[[Path, bool], int], root: Path) -> None:
    """Compares the host without readcache and with it. `run_steps(root, on)` holds `STEPS` in that project and gives
    the characters of all tool results in all requests. See `compare`."""

    def run(directory: Path, on: bool) -> Run:
        make_project(directory)
        began = time.monotonic()
        return Run(run_steps(directory, on), time.monotonic() - began, CALLS)

    compare(name, {package: importlib.metadata.version(package)}, run, root)
