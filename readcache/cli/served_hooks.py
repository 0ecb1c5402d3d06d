"""Hooks that a server answers: an event comes, the answer goes out, and the conversation is held for the next one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.hosts.hooks import HookSessions, hook_answer, hook_settings, make_sessions
from readcache.log.telemetry import tell_failed
from readcache.model.errors import UsageError
from readcache.process import failures
from readcache.process.settings import Settings
from readcache.process.state import store_file
from readcache.process.tidy import tidy_once_a_day
from readcache.serve.frames import TAKEN, texts
from readcache.serve.short_client import MOST_WORD, ShortClient

if TYPE_CHECKING:
    from readcache import Sessions
    from readcache.process.plan import Caller

MOST_EVENT = 64 * 1024 * 1024  # bytes
# Held in memory. Each reader has two files open, and a process may have 1,024.
MOST_PLACES, MOST_READERS = 8, 40
Place = tuple[str, ...]  # directory, host, and what the policy is made of


class ServedHooks:
    """Answers hooks by the log in the store at an absolute path. Safe to call from any thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._held: OrderedDict[Place, Sessions] = OrderedDict()
        self.calls = 0

    def __len__(self) -> int:
        return sum(len(sessions.conversations()) for sessions in list(self._held.values()))

    def converse(self, caller: Caller, client: ShortClient) -> None:
        """Answer one event, or leave it to the client if it is not for us. OSError when the connection breaks."""
        client.send(TAKEN)  # fails where the client has left, and has answered the event itself
        letter, data = client.read(MOST_EVENT)
        try:
            name, settings = hook_settings(caller.words, caller.environ)
            if letter != b"I" or (settings.store and store_file(settings.store) != self._path):
                raise UsageError("this server has another store")
            found = self._sessions(caller.cwd, name, settings)
        except UsageError as error:
            client.send(b"B", texts(str(error)))
            return
        self.calls += 1
        sessions, was_shown = HookSessions(lambda: found), False
        try:
            text = "" if settings.mode == "off" else _answer(name, data, caller.words, sessions)
            client.send(b"T", text.encode())
            was_shown = client.read(MOST_WORD)[0] == b"S"
        finally:
            sessions.end(was_shown=was_shown, keep=True)
        tidy_once_a_day(settings)

    def close(self) -> None:
        """The server ends."""
        with self._lock:
            groups = list(self._held.values())
            self._held.clear()
        for sessions in groups:
            sessions.close_all()

    def _sessions(self, root: str, host: str, settings: Settings) -> Sessions:
        """The sessions of a directory and a host, held for the next event. UsageError."""
        place = root, host, settings.policy, settings.mode, settings.clip, settings.protected, settings.restore
        with self._lock:
            if place not in self._held:
                self._held[place] = make_sessions(host, settings, root, self._path, MOST_READERS)
            self._held.move_to_end(place)
            sessions = self._held[place]
            gone = [self._held.popitem(last=False)[1]] if len(self._held) > MOST_PLACES else []
        for oldest in gone:
            for conversation in oldest.conversations():
                oldest.close(conversation, in_order=False)  # an event of it may be under way
        return sessions


def _answer(name: str, data: bytes, words: Sequence[str], sessions: HookSessions) -> str:
    try:
        return hook_answer(name, data, sessions)
    except Exception as error:  # the host goes on as without us
        failures.note_error(f"hook {' '.join(words)}", error)
        tell_failed(name)
        return ""
