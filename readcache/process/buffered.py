"""Run one call in a process of its own: buffer a program's output, judge it by the log, and print the reply.

`readcache run` and the shims use this module. It does not import `Session`, because starting Python is most of the cost
of such a call.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from readcache.process import child
from readcache.process.settings import Settings, clip_sizes

if TYPE_CHECKING:
    from readcache.core.model.policy import Policy, Rules
    from readcache.log.reader import Reader
    from readcache.process.plan import Plan

RUN = "run"  # the host, if none was named


def run_planned(plan: Plan, words: list[str], env: dict[str, str], call_id: str | None = None) -> int:
    """Run a call's program and carry out its plan. Return the program's exit status, or die by the same signal. Raise
    OSError if the program cannot be started."""
    try:
        output: bytes | None = None
        if plan.is_recall:  # nothing is run
            from readcache.core.sync.recall import UNANSWERED

            output, status = UNANSWERED.encode(), 0
        elif plan.is_buffered:
            output, status = run_buffered(words, env)
        else:
            with child.Forwarding() as signals:
                signals.start(words, env)
                status = signals.wait()
        if output is not None:
            answer_buffered(plan, output, status, call_id)
        elif plan.reading.writes:
            with_reader(plan.settings, lambda reader: reader.note_writes(plan.call("", status, call_id)))
        return child.end_like(status)
    except child.OutputLost as lost:
        return child.end_unread(lost)


def run_buffered(words: list[str], env: dict[str, str]) -> tuple[bytes | None, int]:
    """Run a program. Return its output and its exit status, negative for a signal.

    Return None instead of the output if it was streamed, see `child.collect`. stderr is buffered with stdout if both go
    to the same place. Raise OSError if the program cannot be started.
    """
    pipe, end = os.pipe()
    with child.Forwarding() as signals:
        try:
            signals.start(words, env, stdout=end, stderr=end if child.is_one_stream() else 2)
        finally:
            os.close(end)
        with contextlib.suppress(Exception):  # while the program runs; a failure here repeats later, and is noted
            import readcache.log.reader
            from readcache.log.store.protocol import is_url

            if is_url(os.environ.get("READCACHE_STORE", "")):
                import readcache.log.store.redis
            else:
                import readcache.log.store.sqlite  # noqa: F401
        return child.collect(pipe, signals)


def answer_buffered(plan: Plan, output: bytes, status: int, call_id: str | None = None) -> None:
    """Print the reply for `output` and log it. Print the exact bytes of `output` if no lines are omitted, or if
    anything fails. Raise `child.OutputLost` if stdout cannot be written."""
    shown = False

    def answer(reader: Reader, text: str) -> None:
        nonlocal shown
        pending = reader.judge(plan.call(text, status, call_id), began=plan.settings.began, local=True)
        reply, shown = pending.reply, True
        child.show(output if reply.is_output else reply.text.encode("utf-8", "replace"))
        pending.commit()

    try:
        if (text := plan.text(output)) is not None:
            with_reader(plan.settings, lambda reader: answer(reader, text))
    finally:  # also after a second Ctrl-C: the command has ended, and without readcache its output would be visible
        if not shown:
            child.show(output)


def chosen_policy(settings: Settings) -> Policy:
    """Return the policy that the settings name. Raise UsageError for an unknown policy or an invalid setting."""
    from dataclasses import replace

    from readcache.core.model.policy import Head, HeadTail, Mode, Policy

    sizes = clip_sizes(settings.clip)
    clip = HeadTail(*sizes) if len(sizes) == 2 else Head(*sizes) if sizes else None
    mode = Mode(settings.mode) if settings.mode in ("on", "advise") else Mode.OFF
    policy = Policy.named(settings.policy).protecting(settings.protected).restoring(settings.restore)
    return replace(policy, clip=clip, mode=mode, model=settings.model)


def rules_of(settings: Settings) -> Rules:
    """Return the rules of the reader that the settings name. Raise UsageError for an unknown policy or an invalid
    setting."""
    from readcache.core.model.policy import Rules
    from readcache.core.model.text import session_tag

    tag = session_tag(settings.session, settings.agent)
    return Rules(chosen_policy(settings).used_by(settings.host), tag, settings.host or RUN)


def with_reader(settings: Settings, use: Callable[[Reader], object]) -> None:
    """Call `use` with the reader that the settings name. Note each failure instead of raising it, except
    `child.OutputLost`."""
    from readcache.process import failures

    try:
        from readcache.log.log import Log
        from readcache.log.reader import Reader
        from readcache.log.store import open_store

        log = Log(lambda: open_store(settings.store_spec()), settings.session, settings.agent, time.time)
        reader = Reader(log, rules_of(settings), one_call=True)
        try:
            use(reader)
        finally:
            log.close()
            for failed in log.unlogged():
                failures.note(settings.session, failed.cause, failed.detail)
    except Exception as error:
        failures.note_error(settings.session, error)
    from readcache.process.tidy import tidy_once_a_day

    tidy_once_a_day(settings)
