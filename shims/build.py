"""Builds the client, the small C program in this directory, when the package is installed.

Hatchling calls `CustomBuildHook`. A wheel with the client carries the tag of its platform; where it cannot be built,
the wheel is as pure as ever, and Python does the same work. `python shims/build.py` builds it for this checkout.
READCACHE_MACHINE=aarch64 builds the wheel of another machine, with a compiler for that, and qemu to try the program.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # the tests build the client too
    BuildHookInterface = object

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENT = os.path.join("bin", "readcache")  # below this directory; in a wheel below readcache/_shims
PARTS = ("tool.c", "client.c")
# As small and as quick to start as it gets. There is no C library in it, so that none of its protections can be had.
FLAGS = (
    *("-O2", "-s", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-Wall", "-Wextra"),
    *("-Wl,-z,noseparate-code", "-Wl,--build-id=none"),
)
PATIENCE = 60  # seconds for the compiler
MACHINE = os.environ.get("READCACHE_MACHINE") or os.uname().machine


class CannotBuild(Exception):
    """There is no client for this machine. The text says why."""


def build(path: str, *options: str) -> None:
    """Compiles the client and puts it at `path`. `options` are for the compiler, as CPPFLAGS is. CannotBuild."""
    if not sys.platform.startswith("linux"):
        raise CannotBuild(f"it is for Linux, and this is {sys.platform}")
    other = os.uname().machine != MACHINE
    names = (f"{MACHINE}-linux-gnu-gcc",) if other else (os.environ.get("CC") or "cc", "gcc", "clang")
    compiler = next(filter(None, map(shutil.which, names)), None)
    if compiler is None:
        raise CannotBuild(f"no C compiler is on PATH: {' or '.join(names)}")
    options = (f'-DVERSION="{_version()}"', *shlex.split(os.environ.get("CPPFLAGS", "")), *options)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as place:
            made = os.path.join(place, "readcache")
            _run(compiler, *FLAGS, *options, "-o", made, *(os.path.join(HERE, name) for name in PARTS))
            if _run(*[f"qemu-{MACHINE}-static"] * other, made, "/bin/echo", "ready") != "ready\n":
                raise CannotBuild(f"{compiler} makes programs that do not run here")
            os.chmod(made, 0o755)
            os.replace(made, path)  # in one step: somebody may be running it
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotBuild(f"{error}: {getattr(error, 'stderr', '')}") from None


def build_for_checkout() -> None:
    """Puts it where `readcache` of this checkout finds it, unless it is there and up to date. CannotBuild."""
    path = os.path.join(HERE, CLIENT)
    made_from = [*(os.path.join(HERE, name) for name in (*PARTS, "shim.h", "build.py")), _version_file()]
    if not os.path.exists(path) or os.stat(path).st_mtime < max(os.stat(part).st_mtime for part in made_from):
        build(path)


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def _version_file() -> str:
    return os.path.join(os.path.dirname(HERE), "readcache", "__init__.py")


def _version() -> str:
    with open(_version_file(), encoding="utf-8") as file:
        found = re.search(r'(?m)^__version__ = "(\S+)"', file.read())
    assert found is not None
    return found.group(1)


def _platform_tag() -> str:
    """The tag of a wheel that holds a program without a C library. CannotBuild where pip would not install that."""
    from packaging.tags import sys_tags

    here = {tag.platform for tag in sys_tags()}
    anywhere = (f"manylinux_2_17_{MACHINE}", f"musllinux_1_1_{MACHINE}")
    if here.intersection(anywhere) or os.uname().machine != MACHINE:
        return f"py3-none-{'.'.join(anywhere)}"
    if f"linux_{MACHINE}" in here:
        return f"py3-none-linux_{MACHINE}"
    raise CannotBuild(f"this Python is not for {MACHINE}")


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Puts the client into a wheel; for an editable installation, into the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built. Never fails."""
        self._place = tempfile.mkdtemp()
        try:
            if version == "editable":
                build_for_checkout()
                return
            tag, path = _platform_tag(), os.path.join(self._place, CLIENT)
            build(path)
        except CannotBuild as error:
            self.app.display_warning(f"no client is built, and Python does its work, more slowly: {error}")
            return
        build_data["tag"], build_data["pure_python"] = tag, False
        build_data["force_include"][path] = f"readcache/_shims/{CLIENT}"
        # As `readcache` on PATH, too: it starts Python as Python cannot start itself. What it starts lies beside it.
        beside = os.path.join(self._place, "readcache")
        shutil.copy(path, beside)
        build_data["force_include"][beside] = f"readcache-{_version()}.data/scripts/readcache"
        scripts = self.metadata.core.scripts
        scripts["readcache-python"] = scripts.pop("readcache")

    def finalize(self, *_: object) -> None:
        """Called when the wheel is written."""
        shutil.rmtree(self._place, ignore_errors=True)


if __name__ == "__main__":
    build_for_checkout()
