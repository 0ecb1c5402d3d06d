"""`readcache run`: one command through the session, with the command's streams, signals and status.

What happens to a command is decided by what it is believed to read and write:

- It reads files: its output is held, judged, and the reply is printed (`_answer`).
- It only writes files: it runs with our own streams, nothing is held, and the write is logged when it has ended.
- Anything else: this process becomes bash. Streaming, signals and speed are those of bash, and nothing is logged. So
  `IDENTICAL_OUTPUT` for a command that reads nothing, `any_output`, and counting such a command in a marker's "3 calls
  ago" are given up here; a harness that wants them has `Session.observe`.

Without a session there is nothing to compare with, a command inside a wrapped one does not print what the agent reads,
and /dev/null is read by nobody: bash again. stderr is held together with stdout only where both go to the same place.
POSIX only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from readcache.cli import child
from readcache.cli.settings import INSIDE, Settings, clip_sizes
from readcache.errors import ReadcacheError, UsageError
from readcache.shell.prefilter import may_matter

if TYPE_CHECKING:
    from readcache.policy import Policy
    from readcache.reply import Reply
    from readcache.session import Session


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
        _note(settings, error)
        return None


def _somebody_reads() -> bool:
    return not os.path.samestat(os.fstat(1), os.stat(os.devnull))


def _run_and_note_writes(command: str, env: dict[str, str], settings: Settings, call_id: str | None) -> int:
    cwd = os.getcwd()
    with child.Forwarding() as running:
        running.pid = child.start(child.bash(command, env), env)
        status = running.wait()
    _with_session(settings, cwd, lambda s: s._observe_writes(command, exit_code=status, cwd=cwd, call_id=call_id))
    return status


def _run_and_judge(command: str, env: dict[str, str], settings: Settings, call_id: str | None) -> int:
    cwd = os.getcwd()
    pipe, end = os.pipe()
    with child.Forwarding() as running:
        try:
            words, stderr = child.bash(command, env), end if child.one_place() else 2
            running.pid = child.start(words, env, stdout=end, stderr=stderr)
        finally:
            os.close(end)
        with contextlib.suppress(Exception):  # while bash is at work; what fails here fails again when it is counted
            import readcache.session  # noqa: F401
        output, status = child.collect(pipe, running)
    if output is None:
        _with_session(settings, cwd, lambda s: s._observe_writes(command, exit_code=status, cwd=cwd, call_id=call_id))
    else:
        _answer(command, output, status, settings, cwd, call_id)
    return status


def _answer(command: str, output: bytes, status: int, settings: Settings, cwd: str, call_id: str | None) -> None:
    """Prints what the agent should see: the very bytes unless something is left out."""
    shown = False

    def show(reply: Reply) -> None:
        nonlocal shown
        shown = True
        full = reply.outcome.value == "full"
        child.show(output if full else reply.text.encode("utf-8", "replace"))

    def judge(session: Session) -> None:
        from readcache.reply import Reason

        text = output.decode("utf-8", "replace")
        trouble = Reason.KILLED if status < 0 else None
        try:
            session._answer_command(command, text, status, cwd, call_id, trouble, show)
        except child.OutputLost:
            session._observe_writes(command, exit_code=status, cwd=cwd, call_id=call_id)
            raise

    _with_session(settings, cwd, judge)
    if not shown:
        child.show(output)


def _with_session(settings: Settings, cwd: str, use: Callable[[Session], None]) -> None:
    """Calls `use` with the session; whatever fails is noted, never raised."""
    try:
        from readcache.session import Session

        with Session(
            cwd,
            session_id=settings.session,
            agent_id=settings.agent,
            store=settings.store_spec(),
            policy=_policy(settings),
            one_shot=True,
        ) as session:
            try:
                use(session)
            finally:
                for failed in session._ledger.unlogged():
                    _note(settings, f"{failed.cause}: {failed.detail}")
    except Exception as error:
        _note(settings, error)


def _policy(settings: Settings) -> Policy:
    from readcache.policy import Head, HeadTail, Mode, Policy

    sizes = clip_sizes(settings.clip)
    clip = HeadTail(*sizes) if len(sizes) == 2 else Head(*sizes) if sizes else None
    return Policy(clip=clip, mode=Mode.ADVISE if settings.mode == "advise" else Mode.ON)


def _note(settings: Settings, what: Exception | str) -> None:
    from readcache.cli import failures

    failures.note_failure(settings.session, what)
