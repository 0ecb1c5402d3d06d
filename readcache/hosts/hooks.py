"""`readcache hook HOST`: one event on stdin, the answer on stdout.

A host starts it at each tool call while its user waits, so import only what the event needs. On any failure the host
goes on as without us: print nothing, exit with status 0, and note the failure.
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
    """Answer one event, given as JSON. `words`: the command line after `hook`."""
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
    """(the host's name, the settings) of a hook. UsageError."""
    name, flags = _read_words(words)
    settings = read_settings(environ, flags)
    settings = settings._replace(mode="off") if flags.get("off") else settings
    if settings.mode not in MODES.values():
        raise UsageError(f"invalid READCACHE={settings.mode}: use on, advise or off")
    return name, settings


def hook_answer(name: str, data: bytes, sessions: Sessions) -> str:
    """The answer's JSON; "" for none. UsageError; ValueError for a number that JSON lacks; any error that a malformed
    event causes in the host's adapter."""
    import json

    from readcache.hosts import find_host

    event, host = json.loads(data), find_host(name)
    if not isinstance(event, dict):
        raise UsageError("stdin is not JSON object")
    answer = None if host.hook is None else host.hook(event, sessions)
    return "" if answer is None else json.dumps(answer, allow_nan=False)


class _AtFirstUse:
    """The `Sessions` that `make` gives, made at the first use: most of a hook's time is that import."""

    def __init__(self, make: Callable[[], Sessions]) -> None:
        self.make, self.made = make, cast("Sessions | None", None)

    def __getattr__(self, name: str) -> Any:
        self.made = self.made or self.make()
        return getattr(self.made, name)


def end_event(sessions: Sessions, *, was_shown: bool, keep: bool) -> None:
    """End an event to which these sessions were lent (see `Sessions.at`). `keep`: hold its conversations for the next
    one. Results that were not shown are shown again later. Failures that no store took are noted."""
    from readcache.process import failures

    lent = sessions.lent or {}
    for (conversation, _), session in lent.items():
        for failed in session.reader.unlogged():
            failures.note(conversation, failed.cause, failed.detail)
        session.reader.close(in_order=was_shown)
    for conversation in set() if keep and was_shown else {conversation for conversation, _ in lent}:
        sessions.close(conversation, in_order=was_shown)


def _make_sessions(name: str, settings: Settings) -> Sessions:
    """Return the sessions of a host's hooks, in this directory. UsageError."""
    from readcache import Sessions
    from readcache.process.buffered import chosen_policy
    from readcache.process.state import is_off, store_file

    policy, root, store = chosen_policy(settings), os.getcwd(), settings.store_spec()
    if store_file(store) is None:
        import logging  # the client of a server has it already

        logging.getLogger("readcache").addHandler(logging.NullHandler())  # a hook prints its answer, or nothing
    return Sessions(store=store, local=True, is_off=is_off).at(None, root, policy, name)


def python_program() -> tuple[str, ...]:
    """Return the words that start this readcache, isolated: no variable or directory of the agent's decides what Python
    imports. By the package's path, since -I finds nothing of `pip install --user`."""
    return sys.executable, "-I", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _read_words(words: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    """(the host's name, the options). UsageError."""
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
