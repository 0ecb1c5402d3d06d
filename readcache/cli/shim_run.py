"""A PATH shim's other half: runs the real tool for the agent's own shell, and prints what is left after judging.

The script has found out already that its stdout is what the agent reads. Here the rest is looked at: who called, what
the arguments are believed to read, and whether all of it is plain files. In doubt this process becomes the real tool.

Time is spent on imports alone, so that this imports what judging one call needs, and not `Session`.
"""

from __future__ import annotations

import os
import shlex
import stat
from typing import TYPE_CHECKING, NoReturn

from readcache.process import child
from readcache.process.tool_call import SHIMS, SINK, batch_of, is_own_command, read_tool

if TYPE_CHECKING:
    from readcache.model.claims import Reading
    from readcache.process.settings import Settings

_DEPTH = "READCACHE_DEPTH"
_ALONE = "READCACHE_ALONE"  # a client found no server to ask (shims/tool.c): there is to be one the next time


def stand_in(tool: str, args: list[str]) -> int:
    """What runs in the place of `tool`, or with "-" in that of bash, with "--" as `readcache run`; returns the exit
    status, or becomes the tool."""
    is_alone = bool(os.environ.pop(_ALONE, ""))
    if tool in ("-", "--"):
        if is_alone:  # now, since this process may become bash
            _start_server()
        return _whole_command(args[0], is_shell=tool == "-")
    settings, reading = None, None
    try:
        from readcache.process.settings import read_settings

        settings = read_settings(os.environ)
        settings = settings._replace(host=settings.host or SHIMS)
        if not os.environ.get("READCACHE"):  # nobody says that compactions are reported: nothing may be omitted
            settings = settings._replace(mode="advise")
        # Of a harness that cuts outputs only the whole-command way knows what is cut.
        if settings.acts and not settings.clip and _is_agents_own():
            reading = _read(tool, args, os.getcwd())
    except OSError:
        pass  # the directory is gone, or the caller is somebody else's: no failure of ours
    except Exception as error:
        from readcache.process import failures

        failures.note_error(settings.session if settings else "", error)
    if settings is None or reading is None:
        _become(tool, args)
    try:
        status = _run_and_judge(tool, args, reading, settings)
        if is_alone:
            _start_server()
        return child.end_like(status)
    except child.OutputLost as lost:
        return child.end_unread(lost)


def _run_and_judge(tool: str, args: list[str], reading: Reading, settings: Settings) -> int:
    """The tool's exit status, negative for a signal. Raises child.OutputLost."""
    from readcache.process.held import answer_held, held_call, run_held

    words, cwd, batch = [tool, *args], os.getcwd(), settings.batch or batch_of(os.environ[SINK])
    try:
        output, status = run_held(words, _environment())
    except OSError:  # no more processes or memory are allowed: there may be just enough for the tool alone
        _become(tool, args)
    if output is None:
        return status
    try:
        text = output.decode()
    except UnicodeDecodeError:  # a reply is text: bytes that are none would not come through beside a marker
        child.show(output)
    else:
        answer_held(lambda: held_call(shlex.join(words), cwd, text, reading, status, batch=batch), output, settings)
    return status


def _whole_command(command: str, *, is_shell: bool) -> int:
    from readcache.cli.main import main as command_line

    advise = ["--advise"] if is_shell and not os.environ.get("READCACHE") else []
    return command_line(["run", *advise, "-c", command])


def _start_server() -> None:
    from readcache.serve.ask import start_server

    start_server([])


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


def _read(tool: str, args: list[str], cwd: str) -> Reading | None:
    """What running the tool is believed to print: lines of regular files and nothing else. None: in doubt."""
    from readcache.disk.virtual import is_virtual

    reading = read_tool(tool, args, cwd)
    if reading is None or any(map(is_virtual, reading.keys)):
        return None  # stdin by another name, and what is different for each process that reads it
    named = [arg for arg in args if os.path.lexists(arg)]
    return reading if all(map(_is_readable_file, (*reading.keys, *named))) else None


def _is_readable_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False
