"""Runs the tests of hosts, each in an environment of its own with the real packages from the registries.

    python tests/real_hosts/run.py              # those that install quickly, as .ci/run does
    python tests/real_hosts/run.py --all
    python tests/real_hosts/run.py mcp codex    # these
    python tests/real_hosts/run.py --write mcp  # measure alone, and keep the figures, see measured.py
    python tests/real_hosts/run.py --jobs 2     # two hosts at a time, the output of each at its end
    python tests/real_hosts/run.py --oldest     # with the oldest versions as well that pyproject.toml allows
    python tests/real_hosts/run.py codex --versions 0.150.0,0.171.0  # hold the main conversation; --write keeps it
    python tests/real_hosts/run.py codex --load # hold it at rest, and beside two busy loops for each core

`tests/real_hosts/NAME/needs.json` says what a host needs: "pip" (packages), "npm" (packages, whose programs are put on
PATH), "python" (the lowest version), "quick" (false: only when it is named, or with --all), "variants" (a list of
further "pip" lists that the same tests are run with), "oldest" (one more such list, for --oldest), and "versions" (for
--versions: {"npm" or "pip": the same list, with {} for the version}). The main conversation, and how a host holds it:
main_conversation.py. Environments are kept in $READCACHE_TEST_HOSTS (default: a directory of this user below the
temporary one) for the next run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
KEPT = Path(os.environ.get("READCACHE_TEST_HOSTS") or f"{tempfile.gettempdir()}/readcache-hosts-{os.getuid()}")
OPTIONS = ("-q", "-n", "0", "-W", "default", "-m", "")
NOTHING_CHOSEN = 5  # exit status of pytest
_PRINTING = threading.Lock()


def needs(name: str) -> dict[str, Any]:
    """What the host's tests need."""
    found: dict[str, Any] = json.loads((HERE / name / "needs.json").read_text(encoding="utf-8"))
    return found


def interpreter(lowest: str) -> str | None:
    """A Python of at least that version, this one if it will do."""
    versions = sorted(Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob("versions/3.*/bin/python"))
    wanted = tuple(map(int, lowest.split(".")))
    for python in (sys.executable, *map(str, versions), "python3.12", "python3.13"):
        check = f"import sys, venv; assert sys.version_info[:2] >= {wanted}"
        try:
            if not subprocess.run([python, "-c", check], capture_output=True, check=False).returncode:
                return python
        except OSError:
            continue
    return None


def _directory(name: str, *of: object) -> Path:
    return KEPT / f"{name}-{hashlib.sha256(repr(of).encode()).hexdigest()[:10]}"


def environment(name: str, pip: list[str], npm: list[str], python: str) -> dict[str, str]:
    """Makes the environment, or brings its readcache up to date; gives the variables that programs run with."""
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
    directory, packages = _directory(name, pip, version, TOP), _directory(name, "npm", npm)
    if not (directory / "made").exists():
        subprocess.run([python, "-m", "venv", "--clear", directory], check=True)
        install: list[str] = [
            str(directory / "bin/pip"),
            "install",
            "-q",
            "--no-compile",
            "--disable-pip-version-check",
        ]
        subprocess.run([*install, "-e", f"{TOP}[test]", *pip], check=True)
        (directory / "made").touch()
    if npm and not (packages / "made").exists():
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--prefix", packages, *npm], check=True)
        (packages / "made").touch()
    path = [str(directory / "bin"), str(packages / "node_modules/.bin"), os.environ["PATH"]]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("READCACHE", "PYTHON"))}
    return {
        **kept,
        "VIRTUAL_ENV": str(directory),
        "PATH": os.pathsep.join(path),
        "READCACHE_TEST_HOST": name,
        "READCACHE_TEST_NPM": str(packages),
    }


def run_apart(name: str, given: argparse.Namespace) -> bool:
    """The same in a process of its own, whose output is printed when it has ended, and whole."""
    options = [f"--{option}" for option in ("write", "oldest") if getattr(given, option)]
    words = [sys.executable, __file__, name, *options]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    with _PRINTING:
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.flush()
    return not done.returncode


def run(name: str, given: argparse.Namespace) -> bool:
    """Runs the tests of one host, with each of its variants; false when they fail."""
    wants = needs(name)
    python = interpreter(wants.get("python", "3.10"))
    if python is None:
        print(f"== {name}: no Python {wants['python']} is here", flush=True)
        return False
    fine, written = True, {"READCACHE_WRITE_MEASURED": "1"} if given.write else {}
    chosen = ["-k", "is_measured"] if given.write else []
    older = [] if given.write else wants.get("variants", [])
    oldest = [wants["oldest"]] if given.oldest and "oldest" in wants else []
    for pip in [wants.get("pip", []), *older, *oldest]:
        began = time.monotonic()
        print(f"== {name}: {' '.join([*pip, *wants.get('npm', [])])}", flush=True)
        env = environment(name, pip, wants.get("npm", []), python) | written
        kept = f"cache_dir={KEPT / name}.cache"  # what failed last, for this host alone
        command = ["python", "-m", "pytest", *OPTIONS, "-o", kept, *chosen, str(HERE / name)]
        status = subprocess.run(command, cwd=TOP, env=env, check=False).returncode
        if (
            status and not given.write
        ):  # a host has clocks of its own, and this machine may be busy: what failed has one more try
            print(f"== {name}: FAILED, what did so is run once more", flush=True)
            status = subprocess.run([*command, "--last-failed"], cwd=TOP, env=env, check=False).returncode
        fine &= status in (0, NOTHING_CHOSEN if given.write else 0)
        print(f"== {name}: {'passed' if fine else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
    return fine


def run_main_conversation(name: str, env: dict[str, str]) -> list[dict[str, Any]]:
    """What came of the main conversation, by each way into the host."""
    script = [str(Path(env["VIRTUAL_ENV"]) / "bin/python"), "-m", "tests.real_hosts.main_conversation", name]
    code = f"from tests.real_hosts.main_conversation import module; print(*getattr(module({name!r}), 'WAYS', ()))"
    ways = subprocess.run([script[0], "-c", code], cwd=TOP, env=env, capture_output=True, text=True, check=True)
    found = []
    for way in ways.stdout.split() or [""]:
        ran = subprocess.run(
            [*script, *filter(None, [way])], cwd=TOP, env=env, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            print(f"== {name}: FAILED: {ran.stderr.strip()}", flush=True)
            return []
        found.append(json.loads(ran.stdout.splitlines()[-1]))
    return found


def run_with_versions(name: str, given: argparse.Namespace) -> bool:
    """Holds the main conversation with each of these versions; false when one failed, or counts more than it sent."""
    wants, rows, fine = needs(name), list[dict[str, Any]](), True
    for version in given.versions.split(","):
        listed = {
            key: [need.format(version) for need in wants["versions"].get(key, wants.get(key, []))]
            for key in ("pip", "npm")
        }
        found = run_main_conversation(
            name, environment(name, listed["pip"], listed["npm"], interpreter(wants.get("python", "3.10")) or "")
        )
        for row in found:
            print(json.dumps(row), flush=True)
        fine &= bool(found) and all(row["counted"] <= row["markers"] for row in found)
        rows += found
    if given.write and fine:
        (HERE / name / "versions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return fine


def run_under_load(name: str, given: argparse.Namespace) -> bool:
    """Holds the main conversation at rest, then on a busy machine; false when that cost more than a tenth of the
    markers."""
    wants, fine = needs(name), True
    env = environment(name, wants.get("pip", []), wants.get("npm", []), interpreter(wants.get("python", "3.10")) or "")
    at_rest = run_main_conversation(name, env)
    with busy():
        under_load = run_main_conversation(name, env)
    for rest, load in zip(at_rest, under_load, strict=True):
        way = f" ({rest['way']})" if rest["way"] else ""
        print(
            f"== {name}{way}: {rest['markers']} markers at rest, {load['markers']} under load; {load['doctor']}",
            flush=True,
        )
        fine &= load["markers"] >= 0.9 * rest["markers"] > 0 and load["counted"] <= load["markers"]
    if given.write and fine and at_rest:
        pairs = zip(at_rest, under_load, strict=True)
        kept = [{"way": rest["way"], "rest": rest["markers"], "load": load["markers"]} for rest, load in pairs]
        (HERE / name / "load.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
    return fine and bool(at_rest)


@contextmanager
def busy() -> Iterator[None]:
    """Two loops for each core, while it is entered."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main(words: list[str]) -> int:
    """Exit status 1 when a host's tests fail."""
    known = sorted(path.parent.name for path in HERE.glob("*/needs.json"))
    parser = argparse.ArgumentParser(description="Runs the tests of hosts.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--all", action="store_true", help="those as well that take long to install")
    parser.add_argument("--write", action="store_true", help="measure alone, and keep the figures")
    parser.add_argument("--oldest", action="store_true", help="with the oldest versions, too")
    parser.add_argument("--versions", metavar="A,B", help="hold the main conversation with each of these versions")
    parser.add_argument("--load", action="store_true", help="hold the main conversation at rest, and on a busy machine")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="hosts at a time")
    given = parser.parse_args(words)
    if unknown := set(given.names) - set(known):
        parser.error(f"no such host: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = given.names or [name for name in known if given.all or needs(name).get("quick", True)]
    chosen.sort(key=lambda name: name.startswith("examples-"))  # the short ones fill the gaps at the end
    way = (
        run_with_versions if given.versions else run_under_load if given.load else run if given.jobs == 1 else run_apart
    )
    with ThreadPoolExecutor(given.jobs if way is run_apart else 1) as at_once:
        fine = at_once.map(way, chosen, [given] * len(chosen))
        results = dict(zip(chosen, fine, strict=True))
    if len(chosen) > 1:
        print(*(f"{name}: {'passed' if fine else 'FAILED'}" for name, fine in results.items()), sep="\n")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
