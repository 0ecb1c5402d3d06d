"""What a directory of shims consists of: writing it, finding it again, taking it away, and what is wrong with it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from readcache import __version__

# First programs of 6,482 recorded reads: sed 3,067, cat 2,323, nl 554, head 354, tail 177. grep prints
# differently into a terminal, so that it is left alone.
DEFAULT_TOOLS = ("cat", "head", "tail", "sed", "nl")
TOOLS = (*DEFAULT_TOOLS, "gsed")
FORMER_TOOLS = ("awk", "gawk", "mawk", "tac")  # earlier versions installed them: they pass through, and can be removed
MARK = ".readcache-shims"  # its lines are the tools
AGENT_SHELL, AGENT_COMMAND = "agent-shell.sh", "agent-command.sh"
_BEHIND = ".tool"  # the scripts, where compiled programs stand before them
_SOURCE = "tool.c"
_PLACE = re.compile("@([A-Z]+)@")
# As small and as quick to start as it gets; no C library, so that none of its protections can be had.
_COMPILE = ("-O2", "-s", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector")


class Mark(NamedTuple):
    """What was installed."""

    tools: tuple[str, ...]
    compiled: bool


def find_mark(place: str) -> Mark | None:
    """None when `place` is no directory of shims."""
    try:
        with open(os.path.join(place, MARK), encoding="utf-8") as file:
            tools = tuple(name for name in file.read().split() if name in TOOLS + FORMER_TOOLS)
    except (OSError, UnicodeDecodeError):
        return None
    return Mark(tools, os.path.exists(os.path.join(place, _BEHIND, _SOURCE)))


def text_files(place: str, mark: Mark) -> dict[str, tuple[str, int]]:
    """The text files of an installation in `place`: name -> (text, mode)."""
    values = {
        "PYTHON": shlex.quote(sys.executable),
        "ENTRY": shlex.quote(os.path.join(_package(), "shim", "entry.py")),
        "IMPORTS": shlex.quote(":".join(import_directories())),
        "TOOLS": " ".join(mark.tools),
        "DIR": shlex.quote(place),
    }

    def filled(name: str) -> str:
        with open(os.path.join(_sources(), name), encoding="utf-8") as file:
            return _PLACE.sub(lambda found: values[found.group(1)], file.read())

    behind = f"{_BEHIND}/" if mark.compiled else ""
    out = {f"{behind}{name}": (filled("tool.sh"), 0o755) for name in mark.tools}
    if mark.compiled:
        out[behind + _SOURCE] = (filled(_SOURCE), 0o644)
    out.update({name: (filled(name), 0o644) for name in (AGENT_SHELL, AGENT_COMMAND)})
    out[MARK] = ("".join(f"{name}\n" for name in mark.tools), 0o644)
    return out


def write(place: str, mark: Mark) -> None:
    """Each file in one step, since somebody may be running it; what is there of an earlier installation and not of this
    one goes. OSError; CalledProcessError when the compiler fails, and then nothing was written."""
    before = find_mark(place)
    os.makedirs(place, exist_ok=True)
    if mark.compiled:
        program = _compile()
        os.makedirs(os.path.join(place, _BEHIND), exist_ok=True)
        for name in mark.tools:
            _replace(os.path.join(place, name), program, 0o755)
    for name, (text, mode) in text_files(place, mark).items():
        _replace(os.path.join(place, name), text.encode(), mode)
    if before is not None:
        _unlink(place, _names(place, before) - _names(place, mark))


def remove(place: str, mark: Mark) -> None:
    """Takes away what was installed, and the directory when nothing else is in it. OSError."""
    _unlink(place, _names(place, mark))
    if not os.listdir(place):
        os.rmdir(place)


def find_trouble(place: str) -> Iterator[str]:
    """What is wrong with the shims in `place`, and what to do."""
    mark = find_mark(place)
    if mark is None:
        yield f"{place} is no directory of shims: run `readcache shims install {place}`"
        return
    files = text_files(place, mark)
    changed = [name for name, (text, _) in files.items() if not _holds(os.path.join(place, name), text)]
    programs = [*(name for name, (_, mode) in files.items() if mode & 0o111), *mark.tools]
    stuck = [name for name in programs if not os.access(os.path.join(place, name), os.X_OK)]
    for name in dict.fromkeys(changed + stuck):
        path = os.path.join(place, name)
        yield f"{path} is not what readcache {__version__} at {_package()} installs: install the shims again"
    search = ":".join(d for d in os.environ.get("PATH", os.defpath).split(":") if find_mark(d or ".") is None)
    for name in mark.tools:
        if shutil.which(name, path=search) is None:
            yield f"there is no real {name} on PATH: install it"
    if not _identities_can_be_read():
        yield (
            "/proc/self/fdinfo shows no inode numbers (Linux 5.14 does), so that shims pass everything through: "
            "use `readcache run -c`"
        )


def _holds(path: str, text: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read() == text
    except (OSError, UnicodeDecodeError):
        return False


def import_directories() -> list[str]:
    """Where readcache and what it needs lie: `python -S` does not know. Without bashlex it does with less."""
    specs = (importlib.util.find_spec(name) for name in ("readcache", "xxhash", "bashlex"))
    found = (os.path.dirname(os.path.dirname(os.path.abspath(spec.origin))) for spec in specs if spec and spec.origin)
    return list(dict.fromkeys(found))


def _compile() -> bytes:
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), "cc")
    with tempfile.TemporaryDirectory() as place:
        built = os.path.join(place, "tool")
        words = [compiler, *_COMPILE, "-o", built, os.path.join(_sources(), _SOURCE)]
        subprocess.run(words, check=True, capture_output=True, text=True)
        with open(built, "rb") as file:
            return file.read()


def _replace(path: str, data: bytes, mode: int) -> None:
    with open(f"{path}.new", "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
    os.replace(f"{path}.new", path)


def _names(place: str, mark: Mark) -> set[str]:
    return {*text_files(place, mark), *mark.tools}


def _unlink(place: str, names: set[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(place, name))
    with contextlib.suppress(OSError):  # others' files are in it, or it is not there
        os.rmdir(os.path.join(place, _BEHIND))


def _identities_can_be_read() -> bool:
    """Can a script tell what its stdout is? See shims/agent-shell.sh."""
    try:
        with open("/proc/self/fdinfo/0", encoding="ascii") as file:
            return "\nino:" in file.read()
    except OSError:
        return os.path.exists("/proc/self/fdinfo")  # stdin is closed


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _sources() -> str:
    """shims/ of a checkout; in an installed package it lies inside."""
    installed = os.path.join(_package(), "_shims")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_package()), "shims")
