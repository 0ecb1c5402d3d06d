"""A Python that cannot start costs no byte and no command, by either way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from readcache.cli import shim_files
from tests.shims.sandbox import LINES, Sandbox, make_sandbox, script, start

pytestmark = pytest.mark.slow  # many starts of Python

WAYS = ["agent-shell.sh", "agent-command.sh"]
COMMAND = "cat f; echo done; exit 3"


@pytest.fixture
def shims(tmp_path: Path) -> Sandbox:
    return install(tmp_path)


def install(directory: Path) -> Sandbox:
    """Shims for a Python of their own: a script that becomes this one."""
    top = directory / "top"
    top.mkdir()
    made = make_sandbox(top)
    python = script(directory / "bin" / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        shim_files.write(str(made.shims), shim_files.DEFAULT_TOOLS, "")
    return made


def shown(sandbox: Sandbox, way: str, command: str = COMMAND, **env: str) -> tuple[str, str, int]:
    named = sandbox.readcache(BASH_ENV=str(sandbox.shims / way), **env)
    ran = start(["bash", "-c", command], named, "pipe", sandbox.directory)
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
