"""`readcache run`: one command through the session, with the command's streams, signals and status.

What happens to a command is decided by what it is believed to read and write:

- It reads files: its output is held, judged, and the reply is printed (`held`).
- It only writes files, or may write some: it runs with our own streams, nothing is held, and the write is logged when
  it has ended.
- Anything else: this process becomes bash. Streaming, signals and speed are those of bash, and nothing is logged. So
  `IDENTICAL_OUTPUT` for a command that reads nothing, and `any_output`, are given up here; a harness that wants them
  has `Session.observe`.

Without a session there is nothing to compare with, a command inside a wrapped one does not print what the agent reads,
and /dev/null is read by nobody: bash again. A terminal is the command's own, for prompts, pages and colours: nothing is
held there, and writes are logged. stderr is held together with stdout only where both go to the same place.
POSIX only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from readcache.model.errors import ReadcacheError, UsageError
from readcache.process import child, held
from readcache.process.settings import INSIDE, Settings, clip_sizes
from readcache.process.state import state_directory
from readcache.shell.prefilter import may_matter

if TYPE_CHECKING:
    from readcache.model.call import Call


def run(command: str, settings: Settings, call_id: str | None = None) -> int:
    """Runs `command`; returns its exit status, or dies of the signal that it died of."""
    if "\0" in command:
        raise UsageError("the command holds a NUL character, which bash cannot be given: take it out")
    env = dict(os.environ)
    if not settings.session and settings.mode in ("on", "advise") and INSIDE not in env:
        _say_once_that_nothing_is_recorded()
    if settings.acts:
        env[INSIDE] = settings.context
    try:
        is_judged = _is_judged(command, settings)
        if is_judged is None:
            child.become(child.bash(command, env), env)
        return child.end_like(_run(command, env, settings, call_id, is_judged=is_judged))
    except FileNotFoundError as error:
        raise ReadcacheError(f"bash was not started: {error.strerror}; install bash, or put it on PATH") from None
    except OSError as error:
        raise ReadcacheError(f"bash was not started: {error.strerror}") from None
    except child.OutputLost as lost:
        return child.end_unread(lost)


def _say_once_that_nothing_is_recorded() -> None:
    """Once for each user: stderr is the command's, and an agent may be reading it. `doctor` says it always."""
    try:
        place = state_directory()
        os.makedirs(place, mode=0o700, exist_ok=True)
        os.close(os.open(os.path.join(place, "said-that-no-session-is-named"), os.O_CREAT | os.O_EXCL, 0o600))
    except (OSError, ReadcacheError):  # it was said, or that could not be remembered
        return
    from readcache.cli.terminal import warn

    warn("no session is named, so that nothing is recorded or left out: give --session ID or set READCACHE_SESSION")


def _is_judged(command: str, settings: Settings) -> bool | None:
    """Is its output held and judged? False: it only writes. None: neither, become bash."""
    inside = os.environ.get(INSIDE) == settings.context
    if not settings.acts or inside or not may_matter(command):
        return None
    try:
        clip_sizes(settings.clip)  # what cannot be understood here leaves nothing to be relied on
        from readcache.disk.virtual import is_virtual
        from readcache.shell.read import read_command

        reading = read_command(command, os.getcwd(), None)
        if any(map(is_virtual, reading.keys)):  # who reads it, and who started that, is in it
            return False if reading.writes else None
        if reading.keys and not os.isatty(1) and not os.path.samestat(os.fstat(1), os.stat(os.devnull)):
            return True
        return False if reading.writes else None
    except OSError:  # the working directory is gone, stdout is closed
        return None
    except Exception as error:
        from readcache.process import failures

        failures.note_error(settings.session, error)
        return None


def _run(command: str, env: dict[str, str], settings: Settings, call_id: str | None, *, is_judged: bool) -> int:
    """The exit status, negative for a signal."""
    cwd, words, output = os.getcwd(), child.bash(command, env), None
    if is_judged:
        output, status = held.run_held(words, env)
    else:
        with child.Forwarding() as signals:
            signals.start(words, env)
            status = signals.wait()

    def make_call(text: str) -> Call:
        from readcache.shell.read import read_command

        reading = read_command(command, cwd, status)
        return held.held_call(command, cwd, text, reading, status, call_id=call_id, batch=settings.batch)

    if output is None:
        held.with_reader(settings, lambda reader: reader.note_writes(make_call("")))
        return status
    text = output.decode("utf-8", "replace")
    held.answer_held(lambda: make_call(text), output, settings)
    return status
