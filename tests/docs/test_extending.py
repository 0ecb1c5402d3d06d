"""The package on the page about extending, built and installed as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.tables import TOP

pytestmark = pytest.mark.slow  # installs a package

PAGE = (TOP / "docs/extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
TEXT = "".join(f"line {n} of a file that is read twice\n" for n in range(1, 41))

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which the package was installed."""
    package, site = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("site")
    for name, text in FILES.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text)
    (package / "readcache_acme/__init__.py").touch()
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=package, check=True)
    (wheel,) = (package / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    return site


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Runs `readcache` where the package is installed, in a home of its own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("READCACHE", "XDG"))}
    env |= {
        "PYTHONPATH": f"{site}:{TOP}",
        "HOME": str(tmp_path),
        "ACME_STORES": str(tmp_path),
        "READCACHE_SERVER": "off",
    }

    def call(*words: str, text: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "readcache", *words],
            cwd=tmp_path,
            env=env | more,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


def test_each_part_is_short() -> None:
    assert {name: len(text.splitlines()) < 60 for name, text in FILES.items()} == dict.fromkeys(FILES, True)
    assert len(FILES) == 4


def test_its_host_is_switched_on_answers_and_is_switched_off(run: Run, tmp_path: Path) -> None:
    done = run("init", "acme", "--project")
    assert done.returncode == 0, done.stderr
    settings = tmp_path / ".acme/settings.json"
    assert "hook acme" in settings.read_text()
    event = {"conversation": "c", "command": "cat f", "output": TEXT, "status": 0, "messages": []}
    assert run("hook", "acme", text=json.dumps(event | {"call": "one"})).stdout == ""
    call = {"id": "one", "type": "function", "function": {"name": "bash", "arguments": '{"command": "cat f"}'}}
    seen = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "one", "content": TEXT},
    ]
    answer = run("hook", "acme", text=json.dumps(event | {"call": "two", "messages": seen}))
    assert "UNCHANGED" in json.loads(answer.stdout)["output"]
    assert run("uninit", "acme", "--project").returncode == 0
    assert not settings.exists()


def test_its_store_is_named_by_a_url(run: Run, tmp_path: Path) -> None:
    done = run("run", "--store", "acme://blue", "--session", "s", "-c", "cat f; true")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "blue.db").exists()
    refused = run("run", "--store", "acme://../x", "--session", "s", "-c", "true")
    assert (refused.returncode, "does not name a team" in refused.stderr) == (2, True)


def test_its_transcripts_are_replayed(run: Run, tmp_path: Path) -> None:
    row = {"tool": "bash", "arguments": {"command": "cat f"}, "output": TEXT, "cwd": "/w"}
    lines = [json.dumps(row | {"acme_call": name}) for name in ("one", "two")]
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n")
    done = run("replay", "log.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["formats"] == {"acme": 1}


def test_an_unknown_name_lists_those_that_are_known(run: Run) -> None:
    assert "pi, acme" in run("init", "nobody").stderr
    assert "acme://" in run("run", "--store", "nosuch://x", "--session", "s", "-c", "true").stderr


def test_a_package_that_cannot_be_imported_is_named(run: Run, tmp_path: Path) -> None:
    told = tmp_path / "site/readcache_broken-1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Name: readcache-broken\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[readcache.hosts]\nbroken = nowhere:HOST\n")
    done = run("init", "broken", PYTHONPATH=f"{told.parent}:{TOP}")
    assert "the package readcache-broken" in done.stderr
    assert done.returncode == 2


def test_nothing_is_looked_for_on_the_way_of_a_call(tmp_path: Path) -> None:
    program = """
import sys
from readcache import Session
session = Session("/", store="log.db")
session.observe("cat f", "a line\\n" * 99)
print([name for name in sys.modules if name.startswith(("importlib.metadata", "redis", "readcache.log.store.redis"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"
