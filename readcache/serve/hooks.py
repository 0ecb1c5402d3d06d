"""Hooks that a server answers: it gets an event, sends the answer, and keeps the conversation for the next event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from readcache import Sessions
from readcache.core.model.errors import UsageError
from readcache.log.telemetry import tell_failed
from readcache.process import failures
from readcache.process.buffered import chosen_policy
from readcache.process.settings import Settings, hook_settings
from readcache.process.state import is_off, store_file
from readcache.process.tidy import tidy_once_a_day
from readcache.serve.frames import TAKEN, texts
from readcache.serve.http import MOST_EVENT
from readcache.serve.short_client import MOST_WORD, FrameClient

if TYPE_CHECKING:
    from readcache.process.plan import Caller

MOST_READERS = 320  # held in memory: each has two files open, and a process may have 1,024


class ServedHooks:
    """Answer hooks by the logs in the store at `path`, an absolute path. Safe to call from any thread.

    `answer(host, event, sessions)` returns the answer to an event of that host; see `hosts.hooks.hook_answer`.
    """

    def __init__(self, path: str, answer: Callable[[str, bytes, Sessions], str]) -> None:
        self._path, self._answer = path, answer
        self._sessions = Sessions(store=path, local=True, is_off=is_off, most_readers=MOST_READERS)
        self.calls = 0  # the number of answered events

    def __len__(self) -> int:
        """Return the number of conversations that are kept in memory for the next event."""
        return len(self._sessions.conversations())

    def converse(self, caller: Caller, client: FrameClient) -> None:
        """Answer one event, or leave it to the client if it is not for this server. Raise OSError if the connection
        breaks."""
        client.send(TAKEN)  # fails if the client has left, and has answered the event itself
        letter, data = client.read(MOST_EVENT)
        try:
            name, settings = hook_settings(caller.words, caller.environ)
            if letter != b"I" or (settings.store and store_file(settings.store) != self._path):
                raise UsageError("this server has another store")
            sessions = self.lend(caller.cwd, name, settings)
        except UsageError as error:
            client.send(b"B", texts(str(error)))
            return
        self.calls += 1
        was_shown = False
        try:
            text = ""
            if settings.mode != "off":
                try:
                    text = self._answer(name, data, sessions)
                except Exception as error:  # the host continues as without readcache
                    failures.note_error(f"hook {' '.join(caller.words)}", error)
                    tell_failed(name)
            client.send(b"T", text.encode())
            was_shown = client.read(MOST_WORD)[0] == b"S"
        finally:
            for failed in sessions.end_event(was_shown=was_shown, keep=True):
                failures.note(*failed)
        tidy_once_a_day(settings)

    def close(self) -> None:
        """End all conversations, because the server ends."""
        self._sessions.close_all()

    def lend(self, root: str, host: str, settings: Settings) -> Sessions:
        """Return the sessions of a directory and a host for one event. Raise UsageError for an invalid setting."""
        key = root, host, settings.policy, settings.mode, settings.clip, settings.protected, settings.restore
        return self._sessions.at(key, root, chosen_policy(settings), host)
