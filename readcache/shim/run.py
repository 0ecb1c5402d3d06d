"""The real tool, run by a shim that faces the agent: its output is held, judged, and what is left of it is printed."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from typing import TYPE_CHECKING

from readcache.cli import child, failures

if TYPE_CHECKING:
    from readcache.cli.settings import Settings
    from readcache.judging.judge import Call
    from readcache.model.claims import Reading
    from readcache.reply import Reply


class NotStarted(Exception):
    """The real tool could not be started as a child."""


def run_and_judge(words: list[str], env: dict[str, str], reading: Reading, settings: Settings, batch: str) -> int:
    """Runs the tool and arguments in `words`; returns its exit status, negative for a signal. Raises NotStarted, and
    child.OutputLost."""
    try:
        pipe, end = os.pipe()
    except OSError:
        raise NotStarted from None
    with child.Forwarding() as running:
        try:
            running.pid = child.start(words, env, stdout=end, stderr=end if child.one_place() else 2)
        except OSError:  # no more processes or memory are allowed: there may be just enough for the tool alone
            raise NotStarted from None
        finally:
            os.close(end)
        with contextlib.suppress(Exception):  # while the tool is at work; what fails here fails again below
            import readcache.log.log
            import readcache.log.recorder
            import readcache.log.store.sqlite  # noqa: F401
        output, status = child.collect(pipe, running)
    if output is not None and not _answer(words, reading, output, status, settings, batch):
        child.show(output)
    return status


def _answer(words: list[str], reading: Reading, output: bytes, status: int, settings: Settings, batch: str) -> bool:
    """Prints what the agent should see, and records it; False when nothing was printed, because something failed."""
    shown = False

    def show(reply: Reply) -> None:
        nonlocal shown
        shown = True
        child.show(output if reply.outcome.value == "full" else reply.text.encode("utf-8", "replace"))

    try:
        text = output.decode()
    except UnicodeDecodeError:  # a reply is text: bytes that are none would not come through beside a marker
        return False
    try:
        from readcache.judging import marker
        from readcache.log.log import Ledger
        from readcache.log.recorder import Recorder
        from readcache.log.store import open_store
        from readcache.policy import Mode, Policy

        policy = Policy(mode=Mode.ADVISE if settings.mode == "advise" else Mode.ON)
        ledger = Ledger(lambda: open_store(settings.store_spec()), settings.session, settings.agent, time.time)
        recorder = Recorder(ledger, policy, marker.tag(settings.session), one_shot=True)
        try:
            recorder.answer(_call(words, reading, text, status, batch), status, show)
            for failed in ledger.unlogged():
                failures.note_failure(settings.session, f"{failed.cause}: {failed.detail}")
        finally:
            ledger.close()
    except Exception as error:
        failures.note_failure(settings.session, error)
    return shown


def _call(words: list[str], reading: Reading, output: str, status: int, batch: str) -> Call:
    from readcache.judging.answer import make_request
    from readcache.judging.judge import Call
    from readcache.reply import Reason

    command = shlex.join(words)
    trouble = Reason.KILLED if status < 0 else None
    request = make_request(command, os.getcwd())
    return Call(f"rc-{os.urandom(6).hex()}", command, request, output, reading, batch, trouble)
