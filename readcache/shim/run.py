"""A PATH shim's other half: runs the real tool for the agent's own shell, and prints what is left after judging.

The script has found out already that its stdout is what the agent reads. Here the rest is looked at: who called, what
the arguments are believed to read, and whether all of it is plain files. In doubt this process becomes the real tool.

Time is spent on imports alone, so that this imports what judging one call needs, and not `Session`.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from typing import TYPE_CHECKING, NoReturn

from readcache.cli import child

if TYPE_CHECKING:
    from readcache.cli.settings import Settings
    from readcache.model.claims import Reading

SINK = "READCACHE_SINK"  # "PID mnt_id:N ino:N KIND SHELL", see shims/agent-shell.sh
_DEPTH = "READCACHE_DEPTH"
_SEDS = ("sed", "gsed")


def stand_in(tool: str, args: list[str]) -> int:
    """What runs in the place of `tool`, or with "-" in that of bash; returns the exit status, or becomes the tool."""
    if tool == "-":
        return _whole_command(args[0])
    settings, reading = None, None
    try:
        from readcache.cli.settings import read_settings

        settings = read_settings(os.environ)
        settings = settings._replace(host=settings.host or "shims")
        if not os.environ.get("READCACHE"):  # nobody says that compactions are reported: nothing may be omitted
            settings = settings._replace(mode="advise")
        # Of a harness that cuts outputs only the whole-command way knows what is cut.
        if settings.acts and not settings.clip and _is_agents_own():
            reading = _read(tool, args, os.getcwd())
    except OSError:
        pass  # the directory is gone, or the caller is somebody else's: no failure of ours
    except Exception as error:
        from readcache.cli import failures

        failures.note_error(settings.session if settings else "", error)
    if settings is None or reading is None:
        _become(tool, args)
    try:
        return child.end_like(_run_and_judge(tool, args, reading, settings))
    except child.OutputLost as lost:
        return child.end_unread(lost)


def _run_and_judge(tool: str, args: list[str], reading: Reading, settings: Settings) -> int:
    """The tool's exit status, negative for a signal. Raises child.OutputLost."""
    from readcache.cli.held import answer_held, held_call, run_held

    words, cwd, batch = [tool, *args], os.getcwd(), settings.batch or _batch()
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


def _whole_command(command: str) -> int:
    from readcache.cli.main import main as command_line

    advise = [] if os.environ.get("READCACHE") else ["--advise"]
    return command_line(["run", *advise, "-c", command])


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
    pid, *_, kind, shell = os.environ[SINK].split()
    if int(pid) != os.getppid():
        return int(pid) == os.getpid()  # the shell became this very process
    with open(f"/proc/{pid}/environ", "rb") as file:
        if os.fsencode(f"{SINK}={os.environ[SINK]}") in file.read().split(b"\0"):
            return False
    from readcache.shell.never import is_answer

    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = os.fsdecode(file.read()).split("\0")
    if f"{kind} {shell}" == "command sh" and not any(re.fullmatch("-[a-z]*c", word) for word in words[1:3]):
        return False  # a script: what else it prints is not known; bash has told it in agent-shell.sh
    return not any(is_answer(word) for word in words)


def _read(tool: str, args: list[str], cwd: str) -> Reading | None:
    """What running the tool is believed to print: lines of regular files and nothing else. None: in doubt."""
    from readcache.disk.virtual import is_virtual
    from readcache.model.claims import FileLines, Literal, Reading
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
    paths = {key for claim in claims if isinstance(claim, FileLines) for key in claim.keys}
    if not paths or not all(isinstance(claim, (FileLines, Literal)) for claim in claims):
        return None
    if any(map(is_virtual, paths)):  # stdin by another name, and what is different for each process that reads it
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
