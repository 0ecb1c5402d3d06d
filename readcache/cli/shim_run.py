"""A PATH shim's other half: runs the real tool for the agent's own shell, and prints what is left after judging.

The script has already checked that the agent reads its stdout. This checks the rest: the caller, which files the
arguments read, and that all of them are plain files. In doubt this process becomes the real tool.

Used where no client was built, or no server answers.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NoReturn

from readcache import __version__
from readcache.process import child
from readcache.process.plan import RUN, SINK, Plan, is_own_command, plan_tool, planned, settings_of

if TYPE_CHECKING:
    from readcache.process.settings import Settings

_DEPTH = "READCACHE_DEPTH"
_ALONE = "READCACHE_ALONE"  # the version of a client that found no server to ask (shims/tool.c)


def stand_in(place: str, tool: str, args: list[str]) -> int:
    """Runs in place of `tool`, or for `readcache-run` in place of a shell. Returns the exit status, or becomes the
    tool. `place`: the directory of the calling shim."""
    _make_the_next_call_faster(place)
    if tool == RUN:
        return _whole_command(args[1], is_shell=args[0] == "--shell")
    settings = settings_of(os.environ, "tool")
    plan = planned(settings, lambda: _plan(tool, args, settings))
    if plan is None:
        _become(tool, args)
    from readcache.process.held import run_planned

    try:
        return run_planned(plan, [tool, *args], _environment(), settings)
    except OSError:  # no more processes or memory are allowed: there may be just enough for the tool alone
        _become(tool, args)


def _whole_command(command: str, *, is_shell: bool) -> int:
    from readcache.cli.main import main as command_line

    advise = ["--advise"] if is_shell and not os.environ.get("READCACHE") else []
    return command_line(["run", *advise, "-c", command])


def _make_the_next_call_faster(place: str) -> None:
    """Starts the server that a client did not find. A client of another version is replaced."""
    version = os.environ.pop(_ALONE, "")
    if not version:
        return
    from readcache.serve.ask import start_server

    start_server([])
    if version != __version__:
        from readcache.cli.shim_files import bring_up_to_date

        bring_up_to_date(place)


def _become(tool: str, args: list[str]) -> NoReturn:
    """This process becomes the real tool, as if it had been that from the start."""
    try:
        child.become([tool, *args], _environment())
    except OSError as error:
        os.write(2, f"readcache: {tool} was not started: {error.strerror}\n".encode())
        os._exit(126)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _DEPTH}


def _is_agents_own() -> bool:
    """True if the caller is still the shell that wrote itself down, and its command one whose output no harness parses.

    A program that the shell became (`bash -c ./submit`) has its pid and its stdout; but it was started with this very
    variable in its environment, and the shell was not; a bash that it became writes down another one. OSError where
    /proc may not be read.
    """
    sink = os.environ[SINK]
    pid = sink.partition(" ")[0]
    if int(pid) != os.getppid():
        return int(pid) == os.getpid()  # the shell became this very process
    with open(f"/proc/{pid}/environ", "rb") as file:
        if os.fsencode(f"{SINK}={sink}") in file.read().split(b"\0"):
            return False
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return is_own_command(sink, os.fsdecode(file.read()).split("\0"))


def _plan(tool: str, args: list[str], settings: Settings) -> Plan | None:
    """None: in doubt whether running the tool prints lines of regular files and nothing else."""
    from readcache.disk.virtual import is_virtual

    if not _is_agents_own():
        return None
    plan = plan_tool([tool, *args], os.getcwd(), settings, os.environ[SINK], is_virtual=is_virtual)
    if plan is None:
        return None
    named = [arg for arg in args if os.path.lexists(arg)]
    return plan if all(map(_is_readable_file, (*plan.reading.keys, *named))) else None


def _is_readable_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False
