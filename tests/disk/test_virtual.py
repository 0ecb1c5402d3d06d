"""Which names are files of the kernel's, by whatever links."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from readcache.process.virtual import is_virtual
from tests.shims.sandbox import ROOT


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_text("".join(f"line {n} of a file\n" for n in range(40)))
    (tmp_path / "sub").mkdir()
    for name, target in {
        "pr": "/proc",
        "stat": "pr/self/stat",
        "sub/up": "../stat",
        "stdin": "/dev/stdin",
        "out_again": "/proc/self/cwd",
        "circle": "circle",
        "link": "sub/../f",
        "gone": "nowhere/at/all",
    }.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


VIRTUAL = ["/proc/self/stat", "/dev/stdin", "/dev/fd/0", "pr/self/stat", "pr/cpuinfo", "stat", "sub/up"]
VIRTUAL += ["sub/../pr/self/fd/0", "stdin", "out_again/f", "/dev/shm/../fd/0", "//proc/self/../version", "./pr/version"]


@pytest.mark.parametrize("path", [*VIRTUAL, "/dev/null"])
def test_what_leads_into_proc_or_dev_is_virtual(directory: Path, path: str) -> None:
    assert is_virtual(path)
    assert is_virtual(os.path.join(directory, path))


@pytest.mark.parametrize(
    "path", ["f", "link", "sub/../f", "circle", "gone", "gone/x", "/", ".", "/dev/shm/f", "/processes/f"]
)
def test_all_else_is_not(directory: Path, path: str) -> None:
    assert not is_virtual(path)
    assert not is_virtual(os.path.join(directory, path))


@pytest.mark.parametrize("name", ["/proc/self/stat", "pr/self/stat", "stat", "sub/up"])
def test_readcache_run_leaves_a_read_of_proc_with_the_parent_that_it_has_without(directory: Path, name: str) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "READCACHE": "on", "READCACHE_SESSION": "s"}
    env["READCACHE_STORE"] = str(directory / "store.db")
    for words in (["bash", "-c"], [sys.executable, "-m", "readcache", "run", "-c"]):
        done = subprocess.run([*words, f"cat {name}"], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.split()[3] == str(os.getpid())
