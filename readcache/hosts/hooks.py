"""`readcache hook HOST`: one event on stdin, the answer on stdout.

A host starts it at each tool call while its user waits, so import only what the event needs. After any failure the host
continues as without readcache: print nothing, exit with status 0, and note the failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from readcache.core.model.errors import UsageError
from readcache.process.mode import MODES
from readcache.process.settings import Settings, read_settings

if TYPE_CHECKING:
    from readcache import Sessions

WITH_VALUE = ("--policy", "--protected", "--restore", "--store")


def hook(words: Sequence[str], data: bytes) -> None:
    """Answer one event, given as JSON. `words`: the arguments after `hook`."""
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

                end_event(lazy.made, was_shown=True, keep=False)
                tidy_once_a_day(settings)
        if text:
            os.write(1, text.encode())
    except Exception as error:
        from readcache.process import failures

        failures.note_error(f"hook {' '.join(words)}", error)


def hook_settings(words: Sequence[str], environ: Mapping[str, str]) -> tuple[str, Settings]:
    """Return (the host's name, the settings) of a hook. Raise UsageError for invalid arguments or settings."""
    name, flags = _read_words(words)
    settings = read_settings(environ, flags)
    settings = settings._replace(mode="off") if flags.get("off") else settings
    if settings.mode not in MODES.values():
        raise UsageError(f"invalid READCACHE={settings.mode}: use on, advise or off")
    return name, settings


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


def end_event(sessions: Sessions, *, was_shown: bool, keep: bool) -> None:
    """End an event that used these sessions (see `Sessions.at`), and note the failures that no store has recorded.

    `was_shown`: the model was shown the results. If not, they are shown again when the conversation continues. `keep`:
    keep the event's conversations open for the next event.
    """
    from readcache.process import failures

    lent = sessions.lent or {}
    for (conversation, _), session in lent.items():
        for failed in session.reader.unlogged():
            failures.note(conversation, failed.cause, failed.detail)
        session.reader.close(in_order=was_shown)
    for conversation in set() if keep and was_shown else {conversation for conversation, _ in lent}:
        sessions.close(conversation, in_order=was_shown)


def _make_sessions(name: str, settings: Settings) -> Sessions:
    """Return the sessions for a host's hooks, in the current directory. Raise UsageError for an invalid setting."""
    from readcache import Sessions
    from readcache.process.buffered import chosen_policy
    from readcache.process.state import is_off, store_file

    policy, root, store = chosen_policy(settings), os.getcwd(), settings.store_spec()
    if store_file(store) is None:
        import logging  # costs no time: the store's client imports it anyway

        logging.getLogger("readcache").addHandler(logging.NullHandler())  # a hook prints only its answer
    return Sessions(store=store, local=True, is_off=is_off).at(None, root, policy, name)


def python_program() -> tuple[str, ...]:
    """Return the command that starts this readcache: the Python program and its arguments."""
    # With -I, no variable or directory of the agent decides what Python imports. But -I does not find packages of
    # `pip install --user`, so name the package by its path.
    return sys.executable, "-I", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _read_words(words: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    """Return (the host's name, the options). Raise UsageError for invalid arguments."""
    names, flags, left = list[str](), dict[str, str](), iter(words)
    for word in left:
        if word in WITH_VALUE:
            value = next(left, None)
            if value is None:
                raise UsageError(f"{word} needs a value")
            flags[word[2:]] = value
        elif word in ("--advise", "--off"):
            flags[word[2:]] = "yes"
        elif word.startswith("-"):
            raise UsageError(f"hook has no option {word}")
        else:
            names.append(word)
    if len(names) != 1:
        raise UsageError("hook needs exactly one host")
    return names[0], flags
