"""`readcache run`: one command through the session, with the command's streams, signals and status.

What happens to a command depends on what it probably reads and writes:

- It reads files: its output is buffered and judged, and the reply is printed.
- It only writes files, or may write some: it runs with our own streams, nothing is buffered, and the write is logged
  when it has ended.
- Anything else: this process becomes bash, with bash's streaming, signals and speed, and nothing is logged. So
  `IDENTICAL_OUTPUT` for a command that reads nothing, and `any_output`, are given up here; a harness that wants them
  has `Session.observe`.

This process also becomes bash without a session, inside another wrapped command, and if stdout is /dev/null. On a
terminal nothing is buffered, because prompts, pagers and colours need it, but writes are logged. stderr is buffered
with stdout only if both go to the same place. POSIX only.
"""

from __future__ import annotations

import contextlib
import os

from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.process import buffered, child
from readcache.process.mode import acts
from readcache.process.plan import Caller, Plan, plan_call
from readcache.process.settings import INSIDE, Settings
from readcache.process.state import state_directory


def run(command: str, settings: Settings, call_id: str | None = None) -> int:
    """Runs `command`; returns its exit status, or dies of the signal that it died of."""
    if "\0" in command:
        raise UsageError("the command contains a NUL character, which bash does not accept: remove it")
    env = dict(os.environ)
    if acts(settings.mode) and INSIDE not in env:
        _tell_once(settings)
    if settings.acts:
        env[INSIDE] = settings.context
    try:
        plan = _plan(command, settings)
        if plan is None:
            child.become(child.bash(command, env), env)
        return buffered.run_planned(plan, child.bash(command, env), env, call_id)
    except FileNotFoundError as error:
        raise ReadcacheError(f"cannot start bash: {error.strerror}; install bash, or put it on PATH") from None
    except OSError as error:
        raise ReadcacheError(f"cannot start bash: {error.strerror}") from None


def _tell_once(settings: Settings) -> None:
    """Once for each user: stderr is the command's, and an agent may be reading it. `doctor` says it always."""
    from readcache.cli.output import warn

    with contextlib.suppress(OSError, ReadcacheError):  # it was said, or that could not be remembered
        if not settings.session:
            _remember("said-that-no-session-is-named")
            warn("no session: nothing will be recorded or omitted (use --session ID or READCACHE_SESSION)")
        elif os.isatty(2):
            _remember("said-what-is-kept")
            from readcache.process.tidy import what_is_kept

            warn(f"keeps {what_is_kept(settings)}")


def _remember(name: str) -> None:
    """OSError where that was remembered before."""
    directory = state_directory()
    os.makedirs(directory, mode=0o700, exist_ok=True)
    os.close(os.open(os.path.join(directory, name), os.O_CREAT | os.O_EXCL, 0o600))


def _plan(command: str, settings: Settings) -> Plan | None:
    """None: become bash."""
    from readcache.process.virtual import is_virtual

    try:  # a terminal is the command's own, and nobody reads /dev/null
        can_buffer = not os.isatty(1) and not os.path.samestat(os.fstat(1), os.stat(os.devnull))
        return plan_call(Caller("run", (command,), os.getcwd(), os.environ, can_buffer), is_virtual, settings)
    except OSError:  # the directory is gone, or stdout is closed
        return None
