"""The files of a directory of shims: write, find, check and remove them.

The client is a small C program, built with the package. It asks the server without starting Python.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence

from readcache import __version__
from readcache.core.model.errors import ReadcacheError
from readcache.process.plan import RUN
from readcache.serve.stop import answers

_CLIENT_MARK = f"READCACHE_ALONE={__version__}\0".encode()  # only the client of this version contains it
# First programs of 6,482 recorded reads: sed 3,067, cat 2,323, nl 554, head 354, tail 177. grep has no shim, because it
# prints differently into a terminal.
DEFAULT_TOOLS = ("cat", "head", "tail", "sed", "nl")
TOOLS = (*DEFAULT_TOOLS, "gsed")
MARK = ".readcache-shims"  # a file whose lines are the tools, and the version
_VERSION = f"version={__version__}"
AGENT_SHELL, AGENT_COMMAND = "agent-shell.sh", "agent-command.sh"
_UNFIT = ":\n$`\\"  # a colon ends a name on PATH, a newline in `shims.MEMORY`; bash expands the others in BASH_ENV
BEHIND = ".tool"  # the subdirectory of the scripts, if the client has their names
SOCKET = ".socket"  # the socket of the server for a sandbox that mounts this directory
_PLACEHOLDER = re.compile("@([A-Z]+)@")


def shim_sources() -> str:
    """Return the directory with the sources of the shims: inside an installed package, or shims/ of a checkout."""
    installed = os.path.join(_package(), "_shims")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_package()), "shims")


def find_client() -> str:
    """Return the path of the client of this version, or "" if none was built."""
    path = os.path.join(shim_sources(), "bin", "readcache")
    try:
        with open(path, "rb") as file:
            is_ours = _CLIENT_MARK in file.read()
    except OSError:
        return ""
    return path if is_ours and os.access(path, os.X_OK) else ""


def client_state() -> str:
    """Return the text about the client for `doctor`. Raise ReadcacheError if it is the client of another version, as
    in an old checkout."""
    path = os.path.join(shim_sources(), "bin", "readcache")
    if find_client():
        return path
    if os.path.exists(path):
        raise ReadcacheError(f"{path} is not the client of readcache {__version__}: reinstall the package")
    return (
        "none was built, so that a hook takes some 25 ms in place of 3, and a read through a shim 100 in place of 3: "
        "on Linux install a C compiler, then this package again"
    )


def find_tools(directory: str) -> tuple[str, ...] | None:
    """Return the tools of a directory of shims, or None if `directory` is not one."""
    lines = _mark(directory)
    return _tools(lines) if lines else None


def _mark(directory: str) -> list[str]:
    try:
        with open(os.path.join(directory, MARK), encoding="utf-8") as file:
            return file.read().split("\n")
    except (OSError, UnicodeDecodeError):
        return []


def _tools(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in lines if name in TOOLS)


def _files(directory: str, tools: Sequence[str], client: str) -> dict[str, tuple[bytes, int]]:
    """Return the files of an installation in `directory`: name -> (content, mode). `client`: as for `write`."""
    values = {
        "PYTHON": shlex.quote(sys.executable),
        "ENTRY": shlex.quote(os.path.join(_package(), "cli", "shim_entry.py")),
        "TOOLS": " ".join(tools),
        "DIR": shlex.quote(directory),
    }

    def filled(name: str) -> bytes:
        with open(os.path.join(shim_sources(), name), encoding="utf-8") as file:
            return _PLACEHOLDER.sub(lambda found: values[found.group(1)], file.read()).encode()

    out = {name: (filled(name), 0o644) for name in (AGENT_SHELL, AGENT_COMMAND)}
    out[MARK] = ("".join(f"{line}\n" for line in (*tools, _VERSION)).encode(), 0o644)
    script, program = filled("tool.sh"), b""
    if client:
        with open(client, "rb") as file:
            program = file.read()
    for name in (*tools, RUN):
        if client:
            out[name] = (program, 0o755)
        out[f"{BEHIND}/{name}" if client else name] = (script, 0o755)
    return out


def write(directory: str, tools: Sequence[str], client: str) -> None:
    """Write the files of an installation, and remove files that only an earlier installation had. Raise OSError on
    failure.

    `client`: the path of the client, or "" to install only scripts.
    """
    # Each file is replaced in one step, because it may be running. All users may read it, for any umask, because the
    # agent often runs as another user than the one who installs.
    before, files = find_tools(directory), _files(directory, tools, client)
    _make_directory(directory, is_ours=before is not None)
    for name, (content, mode) in files.items():
        path = os.path.join(directory, name)
        if os.path.dirname(name):
            _make_directory(os.path.dirname(path), is_ours=True)
        _replace_file(path, content, mode)
    if before is not None:
        _unlink(directory, _names(before) - files.keys())


def bring_up_to_date(directory: str) -> None:
    """Replace the shims of another version with the shims of this version, if permissions allow it."""
    directory = os.path.realpath(directory)
    lines = _mark(directory)
    if lines and _VERSION not in lines:
        with contextlib.suppress(OSError):
            write(directory, _tools(lines), find_client())


def _make_directory(path: str, *, is_ours: bool) -> None:
    """Create a directory and its missing parents, readable by all users. If the directory existed, change its mode only
    if it is empty or contains shims (`is_ours`)."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for made in reversed(missing):
        os.mkdir(made)
        os.chmod(made, 0o755)
    if not missing and (is_ours or not os.listdir(path)):
        os.chmod(path, os.stat(path).st_mode & 0o7777 | 0o755)


def remove(directory: str, tools: Sequence[str]) -> None:
    """Remove the installed files, a dead socket, and the directory if it is empty afterwards. Raise OSError on
    failure."""
    path, names = os.path.join(directory, SOCKET), _names(tools)
    is_dead = os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode) and not answers(path)
    _unlink(directory, {*names, SOCKET} if is_dead else names)
    if not os.listdir(directory):
        os.rmdir(directory)


def find_problem(directory: str) -> Iterator[str]:
    """Yield a text for each problem of the shims in `directory`, with its solution."""
    tools = find_tools(directory)
    if tools is None:
        yield f"{directory} is not a directory of shims: run `readcache shims install {directory}`"
        return
    if (problem := find_unfit_name(directory)) is not None:
        yield problem
    options = [] if tools == DEFAULT_TOOLS else ["--tools", *tools]
    again = shlex.join(["readcache", "shims", "install", directory, *options])
    for name, (content, mode) in _files(directory, tools, find_client()).items():
        if not _has_content(path := os.path.join(directory, name), content, mode):
            yield f"{path} is not what readcache {__version__} at {_package()} installs: say `{again}`"
    search = ":".join(d for d in os.environ.get("PATH", os.defpath).split(":") if find_tools(d or ".") is None)
    for name in tools:
        if shutil.which(name, path=search) is None:
            yield f"there is no real {name} on PATH: install it"
    if not _identities_can_be_read():
        yield (
            "/proc/self/fdinfo shows no inode numbers (Linux 5.14 does), so that shims pass everything through: "
            "use `readcache run -c`"
        )


def socket_beside(directory: str) -> str:
    """Return the path of the socket in a directory of shims, or "" if there is none. A server should listen there for a
    sandbox."""
    path = os.path.join(directory, SOCKET)
    return path if os.path.lexists(path) else ""


def find_unfit_name(directory: str) -> str | None:
    """Return the reason why a directory with this name cannot contain shims, or None if it can."""
    if not set(_UNFIT).intersection(directory):
        return None
    todo = "choose a directory without ':', newline, '$', '`' and '\\'"
    return f"{directory!r} cannot stand on PATH and in BASH_ENV: {todo}"


def find_closed_to_others(directory: str) -> str | None:
    """Return the first path that a shim needs and that not every user can read, or None if all can be read."""
    python: tuple[str, ...] = (sys.executable, os.path.realpath(sys.executable), _package())
    for needed in (directory, *(() if socket_beside(directory) else python)):
        steps = [needed]
        while steps[-1] != os.path.dirname(steps[-1]):
            steps.append(os.path.dirname(steps[-1]))
        for path in reversed(steps):
            if os.stat(path).st_mode & 0o005 != 0o005 and (path == needed or not os.stat(path).st_mode & 0o001):
                return path
    return None


def _has_content(path: str, content: bytes, mode: int) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() == content and (not mode & 0o111 or os.access(path, os.X_OK))
    except OSError:
        return False


def _replace_file(path: str, data: bytes, mode: int) -> None:
    with open(f"{path}.new", "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
    os.replace(f"{path}.new", path)


def _names(tools: Sequence[str]) -> set[str]:
    """Return the names of all files that may have been installed for these tools, with a client or without."""
    programs = (*tools, RUN)
    return {AGENT_SHELL, AGENT_COMMAND, MARK, *programs, *(f"{BEHIND}/{name}" for name in programs)}


def _unlink(directory: str, names: set[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))
    with contextlib.suppress(OSError):  # it contains other files, or does not exist
        os.rmdir(os.path.join(directory, BEHIND))


def _identities_can_be_read() -> bool:
    """Return True if a script can identify its stdout. See shims/agent-shell.sh."""
    try:
        with open("/proc/self/fdinfo/0", encoding="ascii") as file:
            return "\nino:" in file.read()
    except OSError:
        return os.path.exists("/proc/self/fdinfo")  # stdin is closed


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
