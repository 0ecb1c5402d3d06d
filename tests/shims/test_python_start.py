"""A Python that cannot start costs no byte and no command, by either way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shims.sandbox import LINES, ROOT, Sandbox, make_sandbox, script, start

WAYS = ["agent-shell.sh", "agent-command.sh"]
COMMAND = "cat f; echo done; exit 3"


@pytest.fixture
def shims(tmp_path: Path) -> Sandbox:
    return install(tmp_path)


def install(place: Path, **env: str) -> Sandbox:
    """Shims for a Python of their own: a script that becomes this one, and writes that down in `starts`."""
    top = place / "top"
    top.mkdir()
    made = make_sandbox(top)
    python = script(place / "bin" / "python", f'#!/bin/sh\necho >>{place}/starts\nexec {sys.executable} "$@"\n')
    code = "import sys; sys.executable = sys.argv[1]; from readcache.cli.main import main; sys.exit(main(sys.argv[2:]))"
    words = [sys.executable, "-c", code, str(python), "shims", "install", str(made.shims)]
    subprocess.run(words, env={"PYTHONPATH": str(ROOT), **env}, check=True, capture_output=True)
    return made


def shown(sandbox: Sandbox, way: str, command: str = COMMAND, **env: str) -> tuple[str, str, int]:
    named = sandbox.readcache(BASH_ENV=str(sandbox.shims / way), **env)
    ran = start(["bash", "-c", command], named, "pipe", sandbox.place)
    return ran.out.decode(), ran.err.decode(), ran.status


@pytest.mark.parametrize("way", WAYS)
def test_a_python_that_starts_does_its_work(shims: Sandbox, way: str) -> None:
    assert LINES not in shown(shims, way)[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho broken >&2; kill -9 $$\n", "", "\x7fELF"])
def test_a_python_that_was_replaced_by_a_broken_one(shims: Sandbox, tmp_path: Path, way: str, text: str) -> None:
    script(tmp_path / "bin" / "python", text)
    assert shown(shims, way) == (f"{LINES}done\n", "", 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_python_that_was_replaced_by_a_sound_one_is_asked_and_does_its_work(
    shims: Sandbox, tmp_path: Path, way: str
) -> None:
    path = tmp_path / "bin" / "python"
    os.utime(path, (0, 0))
    assert LINES not in shown(shims, way)[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("of", ["harness", "agent"])
@pytest.mark.parametrize("kind", ["symbol", "garbage", "sound", "preload"])
def test_a_directory_of_libraries_that_do_not_fit(shims: Sandbox, tmp_path: Path, way: str, of: str, kind: str) -> None:
    """`export LD_LIBRARY_PATH=…`, as conda, ROS or a build of one's own have it. The shims' own shell starts."""
    listed = subprocess.run(["ldd", os.path.realpath(sys.executable)], capture_output=True, text=True).stdout
    needed = [line.split()[0] for line in listed.splitlines() if "=>" in line]
    theirs = subprocess.run(["ldd", "/bin/sh", "/bin/bash", "/bin/cat"], capture_output=True, text=True).stdout
    alone = [name for name in needed if name not in theirs]
    if not alone or shutil.which("cc") is None:
        pytest.skip("this Python needs no library that the shell does not need, or there is no C compiler")
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for name in alone:
        if kind == "garbage":
            (libraries / name).write_text("no library\n")
        elif kind == "symbol":
            words = ["cc", "-shared", "-x", "c", "-", "-o", str(libraries / name)]
            subprocess.run(words, input=b"int nothing;", check=True)
    value = {"LD_LIBRARY_PATH": str(libraries)}
    if kind == "preload":  # prints a word wherever it is loaded
        source = (
            b'#include <unistd.h>\n__attribute__((constructor)) void f(void) { if (getenv("LOUD")) write(2, "!", 1); }'
        )
        words = ["cc", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", str(libraries / "l.so")]
        subprocess.run(words, input=b"char *getenv(char *);\n" + source, check=True)
        value = {"LD_PRELOAD": str(libraries / "l.so"), "LOUD": "yes"}
    if of == "harness":
        out, err, status = shown(shims, way, **value)
    else:
        exports = "".join(f"export {name}={text}; " for name, text in value.items())
        out, err, status = shown(shims, way, exports + COMMAND)
    assert status == 3
    if kind == "sound":
        assert LINES not in out
    elif kind != "preload" and (of == "harness" or way == "agent-shell.sh"):
        assert (out, err) == (f"{LINES}done\n", "")
    elif kind == "preload" and of == "harness":
        assert out == f"{LINES}done\n"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", ["/opt/gpu/lib", "", "/opt/gpu/lib:/more"])
def test_only_where_the_loader_looks_elsewhere_than_at_the_installation_python_is_asked_first(
    tmp_path: Path, way: str, value: str
) -> None:
    """Images for GPUs have LD_LIBRARY_PATH set for all that runs in them."""
    made = install(tmp_path, LD_LIBRARY_PATH="/opt/gpu/lib")
    assert LINES not in shown(made, way, LD_LIBRARY_PATH=value)[0]
    assert (tmp_path / "starts").read_text().count("\n") == (1 if value == "/opt/gpu/lib" else 2)
