"""A PATH shim's other half: runs the real tool for the agent's own shell, and prints what is left after judging.

The script has already checked that the agent reads its stdout. This checks the rest: the caller, which files the
arguments read, and that all of them are plain files. In doubt this process becomes the real tool.

Used where no client was built, or no server answers.
"""

from __future__ import annotations

import os
import stat
from typing import NoReturn

from readcache import __version__
from readcache.process import child
from readcache.process.plan import RUN, SINK, Caller, Plan, plan_call

_DEPTH = "READCACHE_DEPTH"
_ALONE = "READCACHE_ALONE"  # the version of a client that found no server to ask (shims/tool.c)


def run_shim(directory: str, tool: str, args: list[str]) -> int:
    """Runs in place of `tool`, or for `readcache-run` in place of a shell. Returns the exit status, or becomes the
    tool. `directory`: the directory of the calling shim."""
    _make_the_next_call_faster(directory)
    if tool == RUN:
        return _whole_command(args[1], is_shell=args[0] == "--shell")
    plan = _plan(tool, args)
    if plan is None:
        _become(tool, args)
    from readcache.process.buffered import run_planned

    try:
        return run_planned(plan, [tool, *args], _environment())
    except OSError:  # no more processes or memory are allowed: there may be just enough for the tool alone
        _become(tool, args)


def _whole_command(command: str, *, is_shell: bool) -> int:
    from readcache.cli.main import main as command_line

    advise = ["--advise"] if is_shell and not os.environ.get("READCACHE") else []
    return command_line(["run", *advise, "-c", command])


def _make_the_next_call_faster(directory: str) -> None:
    """Starts the server that a client did not find. A client of another version is replaced."""
    version = os.environ.pop(_ALONE, "")
    if not version:
        return
    from readcache.serve.ask import start_server

    start_server([])
    if version != __version__:
        from readcache.cli.shim_files import bring_up_to_date

        bring_up_to_date(directory)


def _become(tool: str, args: list[str]) -> NoReturn:
    """This process becomes the real tool, as if it had been that from the start."""
    try:
        child.become([tool, *args], _environment())
    except OSError as error:
        os.write(2, f"readcache: {tool} was not started: {error.strerror}\n".encode())
        os._exit(126)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _DEPTH}


def _plan(tool: str, args: list[str]) -> Plan | None:
    """None: in doubt whether running the tool prints lines of regular files and nothing else."""
    from readcache.process.virtual import is_virtual

    try:
        if (line := _agents_line()) is None:
            return None
        plan = plan_call(Caller("tool", [tool, *args], os.getcwd(), os.environ, line=line), is_virtual)
    except (OSError, ValueError):  # the caller is another user's, or the directory is gone
        return None
    named = [arg for arg in args if os.path.lexists(arg)]
    return plan if plan and all(map(_is_readable_file, (*plan.reading.keys, *named))) else None


def _agents_line() -> list[str] | None:
    """The command line of the calling shell, empty where it became this process. None if the caller is not the shell
    that wrote itself down any more. OSError where /proc may not be read.

    A program that the shell became (`bash -c ./submit`) has its pid and its stdout; but it was started with this very
    variable in its environment, and the shell was not; a bash that it became writes down another one.
    """
    sink = os.environ[SINK]
    pid = sink.partition(" ")[0]
    if int(pid) != os.getppid():
        return [] if int(pid) == os.getpid() else None
    with open(f"/proc/{pid}/environ", "rb") as file:
        if os.fsencode(f"{SINK}={sink}") in file.read().split(b"\0"):
            return None
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return os.fsdecode(file.read()).split("\0")


def _is_readable_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False
