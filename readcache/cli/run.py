"""`readcache run`: one command through the session, with the command's streams, signals and status.

What happens to a command is decided by what it is believed to read and write:

- It reads files: its output is held, judged, and the reply is printed (`held`).
- It only writes files: it runs with our own streams, nothing is held, and the write is logged when it has ended.
- Anything else: this process becomes bash. Streaming, signals and speed are those of bash, and nothing is logged. So
  `IDENTICAL_OUTPUT` for a command that reads nothing, `any_output`, and counting such a command in a marker's "3 calls
  ago" are given up here; a harness that wants them has `Session.observe`.

Without a session there is nothing to compare with, a command inside a wrapped one does not print what the agent reads,
and /dev/null is read by nobody: bash again. stderr is held together with stdout only where both go to the same place.
POSIX only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from readcache.cli import child, held
from readcache.cli.settings import INSIDE, Settings, clip_sizes
from readcache.errors import ReadcacheError, UsageError
from readcache.shell.prefilter import may_matter

if TYPE_CHECKING:
    from readcache.model.call import Call


def run(command: str, settings: Settings, call_id: str | None = None) -> int:
    """Runs `command`; returns its exit status, or dies of the signal that it died of."""
    if "\0" in command:
        raise UsageError("the command holds a NUL character, which bash cannot be given: take it out")
    env = dict(os.environ)
    if settings.acts:
        env[INSIDE] = settings.context
    try:
        way = _choose(command, settings)
        if way is None:
            child.become(child.bash(command, env), env)
        return child.end_like(way(command, env, settings, call_id))
    except FileNotFoundError as error:
        raise ReadcacheError(f"bash was not started: {error.strerror}; install bash, or put it on PATH") from None
    except OSError as error:
        raise ReadcacheError(f"bash was not started: {error.strerror}") from None
    except child.OutputLost as lost:
        return child.end_unheard(lost)


def _choose(command: str, settings: Settings) -> Callable[[str, dict[str, str], Settings, str | None], int] | None:
    """How to run it; None: become bash."""
    inside = os.environ.get(INSIDE) == settings.context
    if not settings.acts or inside or not may_matter(command):
        return None
    try:
        clip_sizes(settings.clip)  # what cannot be understood here leaves nothing to be relied on
        from readcache.shell.read import read_command

        reading = read_command(command, os.getcwd(), None)
        if reading.keys and _somebody_reads():
            return _run_and_judge
        return _run_and_note_writes if reading.writes else None
    except OSError:  # the working directory is gone, stdout is closed
        return None
    except Exception as error:
        from readcache.cli import failures

        failures.note_failure(settings.session, error)
        return None


def _somebody_reads() -> bool:
    return not os.path.samestat(os.fstat(1), os.stat(os.devnull))


def _run_and_note_writes(command: str, env: dict[str, str], settings: Settings, call_id: str | None) -> int:
    cwd = os.getcwd()
    with child.Forwarding() as signals:
        signals.pid = child.start(child.bash(command, env), env)
        status = signals.wait()
    _note_writes(command, status, cwd, settings, call_id)
    return status


def _run_and_judge(command: str, env: dict[str, str], settings: Settings, call_id: str | None) -> int:
    cwd = os.getcwd()
    output, status = held.run_held(child.bash(command, env), env)
    if output is None:
        _note_writes(command, status, cwd, settings, call_id)
        return status
    try:
        if not held.answer_held(_call(command, output, status, cwd, call_id), output, settings):
            child.show(output)
    except child.OutputLost:
        _note_writes(command, status, cwd, settings, call_id)
        raise
    return status


def _note_writes(command: str, status: int, cwd: str, settings: Settings, call_id: str | None) -> None:
    held.with_reader(settings, lambda reader: reader.note_writes(_call(command, b"", status, cwd, call_id)))


def _call(command: str, output: bytes, status: int, cwd: str, call_id: str | None) -> Call:
    from readcache.model.call import command_call
    from readcache.model.events import MADE_UP_ID
    from readcache.reply import Reason
    from readcache.shell.read import read_command

    return command_call(
        call_id or MADE_UP_ID + os.urandom(6).hex(),
        command,
        cwd,
        output.decode("utf-8", "replace"),
        read_command(command, cwd, status),
        exit_code=status,
        trouble=Reason.KILLED if status < 0 else None,
    )
