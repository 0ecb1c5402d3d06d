"""The wheel: with the client and its platform's tag where there is a C compiler, pure where that fails."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from readcache import __version__
from readcache.cli.shim_files import find_client
from readcache.hosts import find_host
from tests.shims.sandbox import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="no hatchling here"),
]
CLIENT = "readcache/_shims/bin/readcache"


def wheel(directory: Path, **env: str) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(words, cwd=ROOT, env={**os.environ, **env}, check=True, capture_output=True)
    (made,) = directory.iterdir()
    return made


def test_a_wheel_has_the_client_and_the_tag_of_its_platform(tmp_path: Path) -> None:
    if not find_client():
        pytest.skip("no client can be built here")
    made, machine = wheel(tmp_path), os.uname().machine
    assert made.name == f"readcache-{__version__}-py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}.whl"
    with zipfile.ZipFile(made) as archive:
        assert archive.getinfo(CLIENT).external_attr >> 16 & 0o111 == 0o111
        (tmp_path / "readcache").write_bytes(archive.read(CLIENT))
    (tmp_path / "readcache").chmod(0o755)
    words = [str(tmp_path / "readcache"), "/bin/echo", "it runs"]
    assert subprocess.run(words, capture_output=True, check=True).stdout == b"it runs\n"


def test_a_wheel_for_another_machine_has_its_client_and_its_tag(tmp_path: Path) -> None:
    other = "x86_64" if os.uname().machine == "aarch64" else "aarch64"
    qemu = shutil.which(f"qemu-{other}-static")
    if qemu is None or shutil.which(f"{other}-linux-gnu-gcc") is None:
        pytest.skip(f"no compiler for {other} here, or no qemu")
    made = wheel(tmp_path, READCACHE_MACHINE=other)
    assert made.name == f"readcache-{__version__}-py3-none-manylinux_2_17_{other}.musllinux_1_1_{other}.whl"
    with zipfile.ZipFile(made) as archive:
        client = tmp_path / "readcache"
        client.write_bytes(archive.read(CLIENT))
    client.chmod(0o755)
    assert subprocess.run([qemu, str(client), "/bin/echo", "it runs"], capture_output=True).stdout == b"it runs\n"


@pytest.mark.parametrize("compiler", ["fails", "is missing", "makes what does not run"])
def test_where_the_compiler_does_not_do_the_wheel_is_pure(tmp_path: Path, compiler: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    if compiler != "is missing":
        after = "exit 1" if compiler == "fails" else 'while [ "$1" != -o ]; do shift; done; echo >"$2"'
        (tools / "cc").write_text(f"#!/bin/sh\n{after}\n")
        (tools / "cc").chmod(0o755)
    made = wheel(tmp_path / "out", PATH=str(tools), CC="")
    assert made.name == f"readcache-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(made) as archive:
        assert CLIENT not in archive.namelist()
        (entries,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        assert "readcache = readcache.cli.start" in archive.read(entries).decode()
        assert "readcache/_shims/tool.sh" in archive.namelist()
        assert {name.partition("/")[0] for name in archive.namelist()} == {
            "readcache",
            f"readcache-{__version__}.dist-info",
        }


def with_packages(python: str | Path, directory: Path, *words: str, **env: str) -> dict[str, str]:
    """Install the wheel and, without a network, what it imports. Returns the environment to run it in."""
    given = {"PATH": os.environ["PATH"], "HOME": str(directory), "READCACHE_SERVER": "off", **env}
    install = [python, "-m", "pip", "install", *words, "--no-deps", "--no-index", "--ignore-installed", "-q"]
    subprocess.run([*install, str(wheel(directory / "out"))], env=given, check=True, capture_output=True)
    (packages,) = {path.parent for path in directory.rglob("site-packages/readcache")}
    for name in ("xxhash", "bashlex"):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.submodule_search_locations is not None
        shutil.copytree(found.submodule_search_locations[0], packages / name)
    return given


def test_the_readcache_that_is_installed_runs_a_command_whatever_python_is_told(tmp_path: Path) -> None:
    """Installers have two ways of naming Python in a script: the second is for paths with a blank."""
    if not find_client():
        pytest.skip("no client can be built here")
    for name in ("place", "a place"):
        venv = tmp_path / name / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        env = with_packages(venv / "bin/python", tmp_path / name)
        work = tmp_path / name / "work"
        work.mkdir()
        (work / "enum.py").write_text("raise SystemExit(1)\n")
        (work / "f").write_text("".join(f"line {number} of a file\n" for number in range(60)))
        wrong = {"PYTHONPATH": str(work), "PYTHONHOME": "/nowhere"}
        words = [
            str(venv / "bin/readcache"),
            "run",
            "--session",
            "s",
            "-c",
            "cat f; echo $PYTHONPATH $PYTHONHOME; exit 7",
        ]
        done = [subprocess.run(words, cwd=work, env={**env, **wrong}, capture_output=True, text=True) for _ in "12"]
        assert [one.returncode for one in done] == [7, 7]
        told = f"{work} /nowhere\n"
        assert done[0].stdout == (work / "f").read_text() + told
        assert "LEFT_OUT" in done[1].stdout or "UNCHANGED" in done[1].stdout
        plain = subprocess.run(
            [venv / "bin/readcache", "--version"], env={**env, **wrong}, capture_output=True, text=True
        )
        assert plain.stdout == f"readcache {__version__}\n"
        (venv / "bin/python").unlink()  # the environment is gone, and the command is run all the same
        bare = subprocess.run(words, cwd=work, env={**env, **wrong}, capture_output=True, text=True)
        assert (bare.returncode, bare.stdout) == (7, done[0].stdout)


def test_hooks_of_a_user_wide_installation_start_isolated(tmp_path: Path) -> None:
    """`pip install --user`: Python's -I leaves that directory out."""
    python, base = getattr(sys, "_base_executable", ""), tmp_path / "base"
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode:
        pytest.skip("no pip outside of this environment")
    env = with_packages(python, tmp_path, "--user", PYTHONUSERBASE=str(base))
    (packages,) = base.rglob("site-packages")
    program = base / "bin/readcache"
    subprocess.run([program, "init", "gemini", "--on"], env=env, check=True, capture_output=True)
    hook = json.loads((tmp_path / ".gemini/settings.json").read_text())["hooks"]["AfterTool"][0]["hooks"][0]
    assert f" -I {packages}/readcache hook gemini" in hook["command"]
    directory = tmp_path / "trial"
    directory.mkdir()
    (directory / "enum.py").write_text("raise SystemExit(1)")
    answer = ""
    for event in find_host("gemini").trial(str(directory)):
        given = {**env, "PYTHONPATH": str(directory), "PYTHONHOME": "/nowhere"}
        words = ["/bin/sh", "-c", hook["command"]]
        answer = subprocess.run(words, input=json.dumps(event), env=given, capture_output=True, text=True).stdout
    assert "LEFT_OUT" in answer or "UNCHANGED" in answer
