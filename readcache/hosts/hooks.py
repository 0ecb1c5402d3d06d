"""`readcache hook HOST`: one event on stdin, the answer on stdout.

A host starts it at each tool call while its user waits, so import only what the event needs. After any failure the host
continues as without readcache: print nothing, exit with status 0, and note the failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from readcache.core.model.errors import UsageError
from readcache.process.settings import Settings, hook_settings

if TYPE_CHECKING:
    from readcache import Sessions


def hook(words: Sequence[str], data: bytes) -> None:
    """Answer one event, given as JSON. `words`: the arguments after `hook`."""
    from readcache.process import failures

    try:
        name, settings = hook_settings(words, os.environ)
        if settings.mode == "off":
            return
        lazy = _AtFirstUse(lambda: _make_sessions(name, settings))
        try:
            text = hook_answer(name, data, cast("Sessions", lazy))
        finally:
            if lazy.made is not None:
                from readcache.process.tidy import tidy_once_a_day

                for failed in lazy.made.end_event(was_shown=True, keep=False):
                    failures.note(*failed)
                tidy_once_a_day(settings)
        if text:
            os.write(1, text.encode())
    except Exception as error:
        failures.note_error(f"hook {' '.join(words)}", error)


def hook_answer(name: str, data: bytes, sessions: Sessions) -> str:
    """Return the answer as JSON, or "" for no answer.

    Raise UsageError if the host is unknown or the event is not an object, and ValueError if the event is not JSON or
    the answer has a number that JSON lacks. A malformed event may cause any error in the host's adapter.
    """
    import json

    from readcache.hosts import find_host

    event, host = json.loads(data), find_host(name)
    if not isinstance(event, dict):
        raise UsageError("stdin is not JSON object")
    answer = None if host.hook is None else host.hook(event, sessions)
    return "" if answer is None else json.dumps(answer, allow_nan=False)


class _AtFirstUse:
    """A `Sessions` that `make` creates at the first use, because importing it takes most of a hook's time."""

    def __init__(self, make: Callable[[], Sessions]) -> None:
        self.make, self.made = make, cast("Sessions | None", None)

    def __getattr__(self, name: str) -> Any:
        self.made = self.made or self.make()
        return getattr(self.made, name)


def _make_sessions(name: str, settings: Settings) -> Sessions:
    """Return the sessions for a host's hooks, in the current directory. Raise UsageError for an invalid setting."""
    from readcache import Sessions
    from readcache.process.buffered import chosen_policy
    from readcache.process.state import is_off, store_file

    policy, root, store = chosen_policy(settings), os.getcwd(), settings.store_spec()
    if store_file(store) is None:
        import logging  # costs no time: the store's client imports it anyway

        logging.getLogger("readcache").addHandler(logging.NullHandler())  # a hook prints only its answer
    return Sessions(store=store, local=True, is_off=is_off).at(None, root, policy, name, is_only=True)


def python_program() -> tuple[str, ...]:
    """Return the command that starts this readcache: the Python program and its arguments."""
    # With -I, no variable or directory of the agent decides what Python imports. But -I does not find packages of
    # `pip install --user`, so name the package by its path.
    return sys.executable, "-I", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
