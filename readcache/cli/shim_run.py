"""A PATH shim's other half: run the real tool for the agent's own shell, judge its output, and print the reply.

The script has already checked that the agent reads its stdout. This module checks the rest: the caller, which files the
arguments read, and that all of them are plain files. In doubt this process becomes the real tool.

It is used if no client was built, or if no server answers.
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
    """Run instead of `tool`, or for `readcache-run` instead of a shell. Return the exit status, or become the tool.

    `directory`: the directory of the calling shim.
    """
    _make_the_next_call_faster(directory)
    if tool == RUN:
        return _whole_command(args[1], is_shell=args[0] == "--shell")
    plan = _plan(tool, args)
    if plan is None:
        _become(tool, args)
    from readcache.process.buffered import run_planned

    try:
        return run_planned(plan, [tool, *args], _environment())
    except OSError:  # out of processes or memory: there may be just enough for only the tool
        _become(tool, args)


def _whole_command(command: str, *, is_shell: bool) -> int:
    from readcache.cli.main import main as command_line

    advise = ["--advise"] if is_shell and not os.environ.get("READCACHE") else []
    return command_line(["run", *advise, "-c", command])


def _make_the_next_call_faster(directory: str) -> None:
    """Start the server that a client did not find. Replace a client of another version."""
    version = os.environ.pop(_ALONE, "")
    if not version:
        return
    from readcache.serve.ask import start_server

    start_server([])
    if version != __version__:
        from readcache.cli.shim_files import bring_up_to_date

        bring_up_to_date(directory)


def _become(tool: str, args: list[str]) -> NoReturn:
    """Become the real tool, as if this process had been the tool from the start."""
    try:
        child.become([tool, *args], _environment())
    except OSError as error:
        os.write(2, f"readcache: {tool} was not started: {error.strerror}\n".encode())
        os._exit(126)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _DEPTH}


def _plan(tool: str, args: list[str]) -> Plan | None:
    """Return the plan for a tool. Return None unless the tool certainly prints only lines of regular files."""
    from readcache.process.virtual import is_virtual

    try:
        if (line := _agents_line()) is None:
            return None
        plan = plan_call(Caller("tool", [tool, *args], os.getcwd(), os.environ, line=line), is_virtual)
    except (OSError, ValueError):  # the caller belongs to another user, or the directory was removed
        return None
    named = [arg for arg in args if os.path.lexists(arg)]
    return plan if plan and all(map(_is_readable_file, (*plan.reading.keys, *named))) else None


def _agents_line() -> list[str] | None:
    """Return the command line of the calling shell. It is empty if the shell became this process.

    Return None if the caller is no longer the shell that recorded itself. Raise OSError if /proc cannot be read.
    """
    # A program that the shell became (`bash -c ./submit`) has the shell's process ID and stdout. But its environment
    # had this value of the variable at its start, and the shell's had not. A bash that it became records another value.
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
