"""What a directory of shims consists of: writing it, finding it again, taking it away, and what is wrong with it."""

from __future__ import annotations

import contextlib
import encodings
import importlib.util
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from readcache import __version__

# First programs of 6,482 recorded reads: sed 3,067, cat 2,323, nl 554, head 354, tail 177. grep prints
# differently into a terminal, so that it is left alone.
DEFAULT_TOOLS = ("cat", "head", "tail", "sed", "nl")
TOOLS = (*DEFAULT_TOOLS, "gsed")
FORMER_TOOLS = ("awk", "gawk", "mawk", "tac")  # earlier versions installed them: they pass through, and can be removed
MARK = ".readcache-shims"  # its lines are the tools, and what LOADER was
AGENT_SHELL, AGENT_COMMAND = "agent-shell.sh", "agent-command.sh"
_PYTHON = "python.sh"  # has the time stamp of the Python that it names
_LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES")  # by these Python may fail to start
_LOADER_WORD, _VERSION_WORD = "loader=", "version="
_UNFIT = ":\n$`\\"  # the first two end a name on PATH; the others bash expands in BASH_ENV
BEHIND = ".tool"  # the scripts, where compiled programs stand before them
_SOURCE = "tool.c"
_PARTS = (_SOURCE, "client.c")
RUN = "readcache-run"  # the same program: a whole command by the short way
_STATIC = "static"  # the line of an installation that needs nothing but itself and a socket in it
SOCKET = ".socket"  # its name
_PLACE = re.compile("@([A-Z]+)@")
# As small and as quick to start as it gets; no C library, so that none of its protections can be had.
_COMPILE = (
    *("-O2", "-s", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-Wall", "-Wextra"),
    *("-Wl,-z,noseparate-code", "-Wl,--build-id=none"),
)


class NoCompiler(Exception):
    """No C compiler is on PATH."""


class Mark(NamedTuple):
    """What was installed. `loader`: the values of the dynamic loader's variables then, by which Python did start.
    `static`: compiled, and without Python. `version`: of what was compiled; "" for one that did not say."""

    tools: tuple[str, ...]
    compiled: bool
    loader: str = ":" * (len(_LOADER) - 1)
    static: bool = False
    version: str = __version__


def find_mark(place: str) -> Mark | None:
    """None when `place` is no directory of shims."""
    try:
        with open(os.path.join(place, MARK), encoding="utf-8") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    tools = tuple(name for name in lines if name in TOOLS + FORMER_TOOLS)
    version = _said(lines, _VERSION_WORD) or ""
    if _STATIC in lines:
        return Mark(tools, compiled=True, static=True, version=version)
    mark = Mark(tools, os.path.exists(os.path.join(place, BEHIND, _SOURCE)), version=version)
    loader = _said(lines, _LOADER_WORD)
    return mark if loader is None else mark._replace(loader=loader)


def _said(lines: Sequence[str], word: str) -> str | None:
    return next((line.removeprefix(word) for line in lines if line.startswith(word)), None)


def loader(environ: Mapping[str, str]) -> str:
    """What tells the dynamic loader where to look; without newlines."""
    return ":".join(environ.get(name, "") for name in _LOADER).replace("\n", "")


def text_files(place: str, mark: Mark) -> dict[str, tuple[str, int]]:
    """The text files of an installation in `place`: name -> (text, mode)."""
    values = {
        "PYTHON": shlex.quote(sys.executable),
        "LIBRARY": shlex.quote(_library()),
        "LOADER": shlex.quote(mark.loader),
        "ENTRY": shlex.quote(os.path.join(_package(), "cli", "shim_entry.py")),
        "IMPORTS": shlex.quote(":".join(import_directories())),
        "TOOLS": " ".join(mark.tools),
        "DIR": shlex.quote(place),
    }

    def filled(name: str) -> str:
        with open(os.path.join(_sources(), name), encoding="utf-8") as file:
            return _PLACE.sub(lambda found: values[found.group(1)], file.read())

    version = _VERSION_WORD + __version__
    if mark.static:
        out = {name: (filled(name), 0o644) for name in (AGENT_SHELL, AGENT_COMMAND)}
        out[MARK] = ("".join(f"{line}\n" for line in (*mark.tools, _STATIC, version)), 0o644)
        return out
    behind = f"{BEHIND}/" if mark.compiled else ""
    out = {name: (filled(name), 0o644) for name in (_PYTHON, AGENT_SHELL, AGENT_COMMAND)}
    out.update({f"{behind}{name}": (filled("tool.sh"), 0o755) for name in mark.tools})
    if mark.compiled:
        out |= {behind + name: (filled(name), 0o644) for name in (*_PARTS, "shim.h")}  # to tell what was compiled
        out[behind + RUN] = (filled("run.sh"), 0o755)
    said = (*mark.tools, _LOADER_WORD + mark.loader, *([version] if mark.compiled else ()))
    out[MARK] = ("".join(f"{line}\n" for line in said), 0o644)
    return out


def write(place: str, mark: Mark) -> None:
    """Each file in one step, since somebody may be running it; what is there of an earlier installation and not of this
    one goes. All users may read it, whatever the umask: who installs is often another one than the agent. OSError;
    NoCompiler, or CalledProcessError when it fails, and then nothing was written."""
    program = compile_program(beside=mark.static) if mark.compiled else b""
    before = find_mark(place)
    _make_directory(place, is_ours=before is not None)
    if mark.compiled:
        if not mark.static:
            _make_directory(os.path.join(place, BEHIND), is_ours=True)
        for name in _programs(mark):
            replace_file(os.path.join(place, name), program, 0o755)
    for name, (text, mode) in text_files(place, mark).items():
        replace_file(os.path.join(place, name), text.encode(), mode)
    python = os.stat(sys.executable)
    if not mark.static:
        os.utime(os.path.join(place, _PYTHON), ns=(python.st_atime_ns, python.st_mtime_ns))
    if before is not None:
        _unlink(place, _names(place, before) - _names(place, mark))


def _make_directory(path: str, *, is_ours: bool) -> None:
    """Missing parents too. A directory that somebody else made and uses keeps its mode."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for made in reversed(missing):
        os.mkdir(made)
        os.chmod(made, 0o755)
    if not missing and (is_ours or not os.listdir(path)):
        os.chmod(path, os.stat(path).st_mode & 0o7777 | 0o755)


def remove(place: str, mark: Mark) -> None:
    """Takes away what was installed, a socket at which nobody listens any more, and the directory when nothing else is
    in it. OSError."""
    names = _names(place, mark)
    _unlink(place, {*names, SOCKET} if mark.static and _is_left_alone(os.path.join(place, SOCKET)) else names)
    if not os.listdir(place):
        os.rmdir(place)


def _is_left_alone(path: str) -> bool:
    """Is it a socket of a server that has ended without taking it away?"""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(path)
        except ConnectionRefusedError:  # as of any other file, too
            return stat.S_ISSOCK(os.lstat(path).st_mode)
        except OSError:
            return False
    return False


def find_trouble(place: str) -> Iterator[str]:
    """What is wrong with the shims in `place`, and what to do."""
    mark = find_mark(place)
    if mark is None:
        yield f"{place} is not a directory of shims: run `readcache shims install {place}`"
        return
    if (trouble := find_unfit_name(place)) is not None:
        yield trouble
    files = text_files(place, mark)
    changed = [name for name, (text, _) in files.items() if not _holds(os.path.join(place, name), text)]
    again = f"say `{_install_line(place, mark)}`"
    if mark.compiled and mark.version != __version__:
        those = f"readcache {mark.version}" if mark.version else "an earlier readcache"
        cost = "every byte comes" if mark.static else "each read costs a start of Python"
        yield f"the programs in {place} are of {those}, and a server of {__version__} answers none: {cost}; {again}"
        return
    programs = [*(name for name, (_, mode) in files.items() if mode & 0o111), *_programs(mark)]
    stuck = [name for name in programs if not os.access(os.path.join(place, name), os.X_OK)]
    for name in dict.fromkeys(changed + stuck):
        path = os.path.join(place, name)
        yield f"{path} is not what readcache {__version__} at {_package()} installs: {again}"
    if (
        not changed
        and not mark.static
        and os.stat(sys.executable).st_mtime_ns != os.stat(os.path.join(place, _PYTHON)).st_mtime_ns
    ):
        yield f"{sys.executable} is another one since, so that each read asks it first: {again}"
    search = ":".join(d for d in os.environ.get("PATH", os.defpath).split(":") if find_mark(d or ".") is None)
    for name in mark.tools:
        if shutil.which(name, path=search) is None:
            yield f"there is no real {name} on PATH: install it"
    if not _identities_can_be_read():
        yield (
            "/proc/self/fdinfo shows no inode numbers (Linux 5.14 does), so that shims pass everything through: "
            "use `readcache run -c`"
        )


def static_socket(place: str) -> str:
    """Where the programs of a static installation find their server; "" for any other."""
    mark = find_mark(place)
    return os.path.join(place, SOCKET) if mark is not None and mark.static else ""


def _install_line(place: str, mark: Mark) -> str:
    """The command line that installs the same again."""
    tools = [name for name in mark.tools if name in TOOLS]
    chosen = [] if tuple(tools) == DEFAULT_TOOLS else ["--tools", *tools]
    options = [*(["--compile"] if mark.compiled else ()), *(["--static"] if mark.static else ())]
    return shlex.join(["readcache", "shims", "install", place, *options, *chosen])


def find_unfit_name(place: str) -> str | None:
    """Why no shims can be in a directory of that name."""
    if not set(_UNFIT).intersection(place):
        return None
    return f"{place!r} cannot stand on PATH and in BASH_ENV: choose a directory without ':', newline, '$', '`' and '\\'"


def find_closed_to_others(place: str) -> str | None:
    """The first file or directory that a read needs and that not every user may read; None when there is none."""
    python = (sys.executable, os.path.realpath(sys.executable), _package(), *import_directories())
    for needed in (place, *(() if static_socket(place) else python)):
        steps = [needed]
        while steps[-1] != os.path.dirname(steps[-1]):
            steps.append(os.path.dirname(steps[-1]))
        for path in reversed(steps):
            if os.stat(path).st_mode & 0o005 != 0o005 and (path == needed or not os.stat(path).st_mode & 0o001):
                return path
    return None


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


def _programs(mark: Mark) -> tuple[str, ...]:
    """What has the compiled program under its name."""
    return (*mark.tools, RUN) if mark.compiled else mark.tools


def find_compiler() -> str | None:
    """The C compiler's path; CC of the environment is heard, as make does."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)


def compile_program(*, beside: bool) -> bytes:
    """The program that shims are. `beside`: it looks for its socket in its own directory, and nowhere else. CPPFLAGS
    of the environment are heard. CalledProcessError; NoCompiler."""
    known = [
        f'-DVERSION="{__version__}"',
        *(["-DBESIDE"] if beside else []),
        *shlex.split(os.environ.get("CPPFLAGS", "")),
    ]
    compiler = find_compiler()
    if compiler is None:
        raise NoCompiler
    with tempfile.TemporaryDirectory() as place:
        built = os.path.join(place, "tool")
        words = [compiler, *_COMPILE, *known, "-o", built, *(os.path.join(_sources(), name) for name in _PARTS)]
        subprocess.run(words, check=True, capture_output=True, text=True)
        with open(built, "rb") as file:
            return file.read()


def replace_file(path: str, data: bytes, mode: int) -> None:
    """Writes a file in one step, since somebody may be running it. OSError."""
    with open(f"{path}.new", "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
    os.replace(f"{path}.new", path)


def _names(place: str, mark: Mark) -> set[str]:
    return {*text_files(place, mark), *_programs(mark)}


def _unlink(place: str, names: set[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(place, name))
    with contextlib.suppress(OSError):  # others' files are in it, or it is not there
        os.rmdir(os.path.join(place, BEHIND))


def _identities_can_be_read() -> bool:
    """Can a script tell what its stdout is? See shims/agent-shell.sh."""
    try:
        with open("/proc/self/fdinfo/0", encoding="ascii") as file:
            return "\nino:" in file.read()
    except OSError:
        return os.path.exists("/proc/self/fdinfo")  # stdin is closed


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _library() -> str:
    """A file of Python's own library without which it does not start."""
    return encodings.__file__ if os.path.exists(encodings.__file__) else sys.executable


def _sources() -> str:
    """shims/ of a checkout; in an installed package it lies inside."""
    installed = os.path.join(_package(), "_shims")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_package()), "shims")
