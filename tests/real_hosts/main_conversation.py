"""The main conversation: 20 calls of one agent, of which ten can be shortened. What came of it, with shipped settings.

    python -m tests.real_hosts.main_conversation NAME [WAY]   # prints one line of JSON: a `HostReport`

`tests/real_hosts/NAME/main.py` says how a host holds it: `run_steps(root, steps, way)` gives a `HostReport`, and
`WAYS` the ways into the host, each a word; without it there is one way, "". `tests/real_hosts/run.py --versions` and
`--load` use it.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from readcache.testing.conformance import make_project
from readcache.testing.hosts import Bash, Read, Seen, Step
from readcache.testing.requests import markers

HERE = Path(__file__).resolve().parent
SECONDS = 0.4  # that the model takes for an answer
# True: the result can be shortened, since the lines were shown before. No request is the one before it once more.
CALLS: Sequence[tuple[Bash | Read, bool]] = (
    (Bash("ls"), False),
    (Read("shop.py"), False),
    (Read("shop.py", 1, 60), True),
    (Read("shop.py", 5, 50), True),
    (Bash("sed -n '1,40p' shop.py"), True),
    (Bash("cat other.py"), False),
    (Read("other.py"), True),
    (Bash("head -n 45 other.py"), True),
    (Bash("echo ready"), False),
    (Bash("sed -n '100,180p' long.txt"), False),
    (Bash("wc -l shop.py other.py util.py"), False),
    (Bash("sed -n '110,170p' long.txt"), True),
    (Bash("date > now.txt"), False),
    (Bash("cat util.py"), False),
    (Bash("sed -n '11,60p' util.py"), True),
    (Bash("pwd"), False),
    (Bash("tail -n 40 util.py"), True),
    (Bash("head -n 50 shop.py"), True),
    (Bash("ls ."), False),
    (Bash("tail -n 50 other.py"), True),
)
POSSIBLE = sum(can_be for _, can_be in CALLS)
RunReadcache = Callable[..., tuple[int, str]]  # gets the words of a command; gives the status, and what was printed


@dataclass(frozen=True, slots=True)
class HostReport:
    """What came of one conversation."""

    version: str  # of the host
    way: str  # into the host
    said: str  # by `init`, at its end
    results: int  # that the model was sent
    recorded: int  # of them, in the log
    markers: int  # that the model was sent
    counted: int  # results with something left out, as `gain` has them
    doctor: str  # its word on this host: "ok", "broken", and the reason


def make_main_project(root: Path) -> None:
    """The files that the calls read, in a new directory."""
    make_project(root)
    shop = (root / "shop.py").read_text()
    for name in ("other", "util"):
        (root / f"{name}.py").write_text(shop.replace("shop", name).replace("item", name))


def main_steps(can: frozenset[type]) -> list[Step]:
    """One step for each call. A host without a read tool uses cat and sed."""
    return [(call if Read in can or isinstance(call, Bash) else _as_command(call),) for call, _ in CALLS]


def _as_command(call: Read) -> Bash:
    return Bash(f"cat {call.path}" if call.end is None else f"sed -n '{call.start},{call.end}p' {call.path}")


def command_line(root: Path, env: Mapping[str, str]) -> RunReadcache:
    """Our command line, in a project and with these variables."""

    def readcache(*words: str) -> tuple[int, str]:
        command = ["readcache", *words]  # as a user does, so that `doctor` finds the program that `init` wrote down
        ran = subprocess.run(command, cwd=root, env=env, check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout

    return readcache


def version_of(program: str) -> str:
    """What a host's program says of its version."""
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


def host_report(
    version: str, way: str, said: str, seen: Sequence[Seen], readcache: RunReadcache, host: str
) -> HostReport:
    """What came of it. `readcache` runs our command line in the environment of that host; `host`: its name there."""
    results = [text for one in seen for text in one.results]
    _, printed = readcache("gain", "--json")
    found: dict[str, Any] = {"counters": {"calls": 0}, "results_cut": 0}  # nothing is recorded
    found = json.loads(printed)["windows"]["all"] if printed.startswith("{") else found
    _, told = readcache("doctor", "--host", host)
    line = next((line for line in told.splitlines() if host in line.split()[:2]), told)
    sent = sum(bool(markers(text)) for text in results)
    words = " ".join(line.replace(host, "", 1).split())
    last = next((line for line in said.splitlines() if line.startswith(f"{host}: ")), said.strip())
    return HostReport(version, way, last, len(results), found["counters"]["calls"], sent, found["results_cut"], words)


def module(name: str) -> Any:
    """`main.py` of the host of that name."""
    sys.path.insert(0, str(HERE / name))
    spec = importlib.util.spec_from_file_location("main_of_host", HERE / name / "main.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def main(words: Sequence[str]) -> None:
    """Hold it, and print what came of it."""
    host = module(words[0])
    with tempfile.TemporaryDirectory(prefix="rc-main-", ignore_cleanup_errors=True) as directory:
        root = Path(directory) / "p"
        make_main_project(root)
        print(json.dumps(asdict(host.run_steps(root, main_steps(host.CAN), words[1] if words[1:] else ""))))


if __name__ == "__main__":
    main(sys.argv[1:])
