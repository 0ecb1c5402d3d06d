"""A PATH shim's other half: runs the real tool for the agent's own shell, and prints what is left after judging.

Started by the scripts in shims/ alone, as `python -ISE shim.py IMPORTS TOOL ARGS…` (or `- COMMAND`, the whole-command
way). IMPORTS are the directories to import from, joined by ":", since `-S` leaves site-packages out. The script has
found out already that its stdout is what the agent reads. Here the rest is looked at: who called, what the arguments
are believed to read, and whether all of it is plain files. In doubt this process becomes the real tool.

Time is spent on imports alone, so that this imports what judging one call needs, and not `Session`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds to import, in which a Ctrl-C would print a traceback

if __name__ == "__main__" and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import contextlib
import gc
import os
import re
import resource
import signal
import stat
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from readcache.model.claims import Reading

if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
    sys.dont_write_bytecode = True  # Python takes a file that was cut at the limit for a whole one, ever after

SINK = "READCACHE_SINK"  # "PID mnt_id:N ino:N KIND SHELL", see shims/agent-shell.sh
_DEPTH = "READCACHE_DEPTH"
_SEDS = ("sed", "gsed")
_NOT_FILES = ("/dev/", "/proc/")  # stdin by another name, and what is different for each process that reads it


def stand_in(argv: list[str]) -> int:
    """`argv` as the scripts give it; returns the exit status, or becomes the real tool."""
    imports, tool, *args = argv
    sys.path += imports.split(":")
    from readcache.cli import child

    if tool == "-":
        return _whole_command(args[0])
    settings, reading = None, None
    try:
        from readcache.cli.settings import read_settings

        settings = read_settings(os.environ)
        if not os.environ.get("READCACHE"):  # nobody says that compactions are reported: nothing may be omitted
            settings = settings._replace(mode="advise")
        # Of a harness that cuts outputs only the whole-command way knows what is cut.
        if settings.acts and not settings.clip and _is_agents_own():
            reading = _read(tool, args, os.getcwd())
    except OSError:
        pass  # the directory is gone, or the caller is somebody else's: no failure of ours
    except Exception as error:
        from readcache.cli import failures

        failures.note_failure(settings.session if settings else "", error)
    if settings is None or reading is None:
        _become(tool, args)
    from readcache.shim.run import NotStarted, run_and_judge

    try:
        status = run_and_judge([tool, *args], _environment(), reading, settings, _batch())
        return child.end_like(status)
    except child.OutputLost as lost:
        return child.end_unheard(lost)
    except NotStarted:
        _become(tool, args)


def _whole_command(command: str) -> int:
    from readcache.cli.main import main as command_line

    advise = [] if os.environ.get("READCACHE") else ["--advise"]
    return command_line(["run", *advise, "-c", command])


def _become(tool: str, args: list[str]) -> NoReturn:
    """This process becomes the real tool, as if it had been that from the start."""
    from readcache.cli import child

    try:
        child.become([tool, *args], _environment())
    except OSError as error:
        os.write(2, f"readcache: {tool} was not started: {error.strerror}\n".encode())
        os._exit(126)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _DEPTH}


# ------------------------------------------------------------ whether to act


def _is_agents_own() -> bool:
    """Is the caller still the shell that wrote itself down, running a command whose output no harness parses?

    A program that the shell became (`bash -c ./submit`) has its pid and its stdout; but it was started with the
    shell's variable in its environment, and the shell was not. OSError where /proc may not be read.
    """
    pid, *_, kind, shell = os.environ[SINK].split()
    if int(pid) != os.getppid():
        return int(pid) == os.getpid()  # the shell became this very process
    with open(f"/proc/{pid}/environ", "rb") as file:
        if any(entry.startswith(SINK.encode() + b"=") for entry in file.read().split(b"\0")):
            return False
    from readcache.policy import Policy

    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = os.fsdecode(file.read()).split("\0")
    if f"{kind} {shell}" == "command sh" and not any(re.fullmatch("-[a-z]*c", word) for word in words[1:3]):
        return False  # a script: what else it prints is not known; bash has told it in agent-shell.sh
    return not any(Policy().forbids(word) for word in words)


def _read(tool: str, args: list[str], cwd: str) -> Reading | None:
    """What running the tool is believed to print: lines of regular files and nothing else. None: in doubt."""
    from readcache.model.claims import FileLines, Literal, Reading, path_of
    from readcache.shell.arguments import Arg, CannotTell, Program
    from readcache.shell.readers import READERS
    from readcache.shell.streams import Stream

    if any(arg.startswith("-") and "i" in arg for arg in args) and tool in _SEDS:
        return None  # `sed -i`
    # A `~` that comes here is a part of the name: the shell has dealt with the others.
    words = tuple(Arg(arg, f"./{arg}" if arg.startswith("~") else arg) for arg in args)
    try:
        "".join((cwd, *args)).encode()  # names that are not UTF-8 cannot be told to a model
        claims = READERS[tool](Program(tool, words, Stream(), cwd))
    except (CannotTell, KeyError, UnicodeEncodeError):
        return None
    paths = {path_of(key) for claim in claims if isinstance(claim, FileLines) for key in claim.keys}
    if not paths or not all(isinstance(claim, (FileLines, Literal)) for claim in claims):
        return None
    if any(path.startswith(_NOT_FILES) for path in paths):
        return None
    named = [arg for arg in args if os.path.lexists(arg)]
    return Reading(claims) if all(map(_is_readable_file, (*paths, *named))) else None


def _is_readable_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False


def _batch() -> str:
    """The reads of one command are delivered at once; of a shell that stays, each command is taken for itself."""
    sink = os.environ[SINK]
    return f"shell {sink}" if sink.split()[-2] == "command" else ""


if __name__ == "__main__":
    gc.disable()  # this process lives for some 50 ms, and collecting would take one or two of them
    try:
        end = stand_in(sys.argv[1:])
    except Exception:  # readcache was taken away, there is no memory: what `_become` would do must do without it
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        words = ["bash", "-c", sys.argv[3]] if sys.argv[2] == "-" else sys.argv[2:]
        os.execvp(words[0], words)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(end)  # taking the interpreter down would take 7 ms
