"""`readcache hook HOST`: one event on stdin, the answer on stdout.

A host starts it at each tool call while its user waits, so import only what the event needs. On any failure the host
goes on as without us: print nothing, exit with status 0, and note the failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from readcache.model.errors import UsageError
from readcache.process.mode import MODES
from readcache.process.settings import Settings, read_settings

if TYPE_CHECKING:
    from readcache import Session, Sessions

WITH_VALUE = ("--policy", "--protected", "--restore", "--store")


def hook(words: Sequence[str], data: bytes) -> None:
    """Answer one event, given as JSON. `words`: the command line after `hook`."""
    try:
        name, settings = hook_settings(words, os.environ)
        if settings.mode == "off":
            return
        sessions = HookSessions(lambda: make_sessions(name, settings, os.getcwd(), settings.store_spec()))
        try:
            text = hook_answer(name, data, sessions)
        finally:
            sessions.end(was_shown=True, keep=False)
            if sessions.were_needed:
                from readcache.process.tidy import tidy_once_a_day

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


def hook_answer(name: str, data: bytes, sessions: Sessions | HookSessions) -> str:
    """The answer's JSON; "" for none. UsageError; ValueError for a number that JSON lacks; any error that a malformed
    event causes in the host's adapter."""
    import json

    from readcache.hosts import find_host

    event, host = json.loads(data), find_host(name)
    if not isinstance(event, dict):
        raise UsageError("stdin is not JSON object")
    answer = None if host.hook is None else host.hook(event, cast("Sessions", sessions))
    return "" if answer is None else json.dumps(answer, allow_nan=False)


class HookSessions:
    """The `Sessions` of one event, made at the first use: most of a hook's time is that import."""

    def __init__(self, make: Callable[[], Sessions]) -> None:
        self._make, self._made = make, cast("Sessions | None", None)
        self._used: dict[tuple[str, str], Session] = {}

    def get(self, conversation: str, agent: str = "main") -> Session:
        """As `Sessions` does."""
        session = self._used[conversation, agent] = self._sessions().get(conversation, agent)
        return session

    def fork(self, conversation: str, agent: str, *, parent: str = "main", inherit: bool = False) -> Session:
        """As `Sessions` does."""
        session = self._sessions().fork(conversation, agent, parent=parent, inherit=inherit)
        self._used[conversation, session.agent_id] = session
        return session

    def inherit(self, conversation: str, source: str) -> None:
        """As `Sessions` does. The source is read alone: its last results are as sure as they were."""
        self._sessions().inherit(conversation, source)

    def close(self, conversation: str) -> None:
        """As `Sessions` does."""
        self._sessions().close(conversation)

    def end(self, *, was_shown: bool, keep: bool) -> None:
        """The event is over. `keep`: hold its conversations for the next one. Results that were not shown are shown
        again when they go on. Failures that no store took are noted."""
        from readcache.process import failures

        for (conversation, _), session in self._used.items():
            for failed in session.reader.unlogged():
                failures.note(conversation, failed.cause, failed.detail)
            session.reader.close(in_order=was_shown)
        for conversation in set() if keep and was_shown else {conversation for conversation, _ in self._used}:
            self._sessions().close(conversation, in_order=was_shown)

    @property
    def were_needed(self) -> bool:
        """True if the event asked for a session."""
        return self._made is not None

    def _sessions(self) -> Sessions:
        self._made = self._made or self._make()
        return self._made


def make_sessions(name: str, settings: Settings, root: str, store: str, most_readers: int | None = None) -> Sessions:
    """Those of a host's hooks. UsageError."""
    from readcache import Sessions
    from readcache.process.held import chosen_policy
    from readcache.process.state import is_off, store_file

    policy = chosen_policy(settings)
    if store_file(store) is None:
        import logging  # the client of a server has it already

        logging.getLogger("readcache").addHandler(logging.NullHandler())  # a hook prints its answer, or nothing
    return Sessions(root, store=store, policy=policy, local=True, host=name, most_readers=most_readers, is_off=is_off)


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
