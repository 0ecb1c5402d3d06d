"""`readcache run`: one command through the session, with the command's streams, signals and status.

A command is handled according to the files that it probably reads and writes:

- It reads files: its output is buffered and judged, and the reply is printed.
- It only writes files, or may write some: it runs with this process's own streams, nothing is buffered, and the write
  is logged when it has ended.
- Anything else: this process becomes bash, with bash's streaming, signals and speed, and nothing is logged. So
  `IDENTICAL_OUTPUT` for a command that reads nothing, and `any_output`, do not work here. A harness that needs them can
  call `Session.observe`.

This process also becomes bash without a session, inside another wrapped command, and if stdout is /dev/null. On a
terminal nothing is buffered, because prompts, pagers and colours need the terminal, but writes are logged. The stderr
stream is buffered with stdout only if both go to the same file or pipe. POSIX only.
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
    """Run `command`. Return its exit status, or die of the signal that killed it. Raise UsageError if the command
    contains a NUL character, and ReadcacheError if bash cannot be started."""
    if "\0" in command:
        raise UsageError("the command contains a NUL character, which bash does not accept: remove it")
    if settings.session and "readcache recall " in command:
        from readcache.cli.recall import recalled
        from readcache.core.sync.recall import asked_recall

        if (asked := asked_recall(command)) is not None:
            print(recalled(*asked, settings), end="")
            return 0
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
    """Warn that no session is named, or report what is kept, but only once for each user."""
    # stderr belongs to the command, and an agent may read it. `doctor` always says the same.
    from readcache.cli.output import warn

    with contextlib.suppress(OSError, ReadcacheError):  # it was said before, or cannot be remembered
        if not settings.session:
            _remember("said-that-no-session-is-named")
            warn("no session: nothing will be recorded or omitted (use --session ID or READCACHE_SESSION)")
        elif os.isatty(2):
            _remember("said-what-is-kept")
            from readcache.process.tidy import what_is_kept

            warn(f"keeps {what_is_kept(settings)}")


def _remember(name: str) -> None:
    """Remember that `name` was said. Raise OSError if it was remembered before, or cannot be."""
    directory = state_directory()
    os.makedirs(directory, mode=0o700, exist_ok=True)
    os.close(os.open(os.path.join(directory, name), os.O_CREAT | os.O_EXCL, 0o600))


def _plan(command: str, settings: Settings) -> Plan | None:
    """Return the plan for a command, or None if this process should become bash."""
    from readcache.process.virtual import is_virtual

    try:  # do not buffer on a terminal, which the command needs, or on /dev/null, which nobody reads
        can_buffer = not os.isatty(1) and not os.path.samestat(os.fstat(1), os.stat(os.devnull))
        return plan_call(Caller("run", (command,), os.getcwd(), os.environ, can_buffer), is_virtual, settings)
    except OSError:  # the directory was removed, or stdout is closed
        return None
