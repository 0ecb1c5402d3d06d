"""The real tool, run by a shim that faces the agent: its output is held, judged, and what is left of it is printed."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from readcache.cli import child
from readcache.cli.held import answer_held, run_held

if TYPE_CHECKING:
    from readcache.cli.settings import Settings
    from readcache.model.claims import Reading


class NotStarted(Exception):
    """The real tool could not be started as a child."""


def run_and_judge(words: list[str], env: dict[str, str], reading: Reading, settings: Settings, batch: str) -> int:
    """Runs the tool and arguments in `words`; returns its exit status, negative for a signal. Raises NotStarted, and
    child.OutputLost."""
    try:
        output, status = run_held(words, env)
    except OSError:  # no more processes or memory are allowed: there may be just enough for the tool alone
        raise NotStarted from None
    if output is not None and not _answer(words, reading, output, status, settings, batch):
        child.show(output)
    return status


def _answer(words: list[str], reading: Reading, output: bytes, status: int, settings: Settings, batch: str) -> bool:
    """Prints what the agent should see, and logs it; False when nothing was printed."""
    try:
        text = output.decode()
    except UnicodeDecodeError:  # a reply is text: bytes that are none would not come through beside a marker
        return False
    try:
        from readcache.model.call import command_call
        from readcache.model.events import MADE_UP_ID
        from readcache.reply import Reason

        call = command_call(
            MADE_UP_ID + os.urandom(6).hex(),
            shlex.join(words),
            os.getcwd(),
            text,
            reading,
            exit_code=status,
            batch=batch,
            trouble=Reason.KILLED if status < 0 else None,
        )
    except Exception as error:
        from readcache.cli import failures

        failures.note_failure(settings.session, error)
        return False
    return answer_held(call, output, settings)
