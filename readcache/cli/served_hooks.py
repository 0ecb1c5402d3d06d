"""Hooks that a server answers: an event comes, the answer goes out, and the conversation is held for the next one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, cast

from readcache import Session, Sessions
from readcache.hosts.hooks import hook_answer, hook_settings
from readcache.model.errors import UsageError
from readcache.process import failures
from readcache.process.held import chosen_policy
from readcache.process.settings import Settings
from readcache.process.state import store_file
from readcache.process.tidy import tidy_once_a_day
from readcache.serve.frames import TAKEN, read_frame, send_frame, texts

if TYPE_CHECKING:
    from readcache.serve.frames import Connection
    from readcache.serve.head import CallHead

MOST_EVENT = 64 * 1024 * 1024  # bytes
MOST_CONVERSATIONS = 100  # held in memory; each has two files open
_MOST_WORD = 4096  # bytes of what a client says of our answer
Name = tuple[str, str, str, str, str, str]  # conversation, directory, host, policy, mode and clip


class _Conversation:
    """The sessions of one conversation, and the number of events that use them."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions, self.users = sessions, 0


class ServedHooks:
    """Answers hooks by the log in the store at an absolute path. Safe to call from any thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._held: OrderedDict[Name, _Conversation] = OrderedDict()
        self.calls = 0

    def __len__(self) -> int:
        return len(self._held)

    def converse(self, head: CallHead, connection: Connection) -> None:
        """One event. What is not for us is left to the client. OSError when the connection breaks."""
        send_frame(connection, TAKEN)  # fails where the client has left, and has answered the event itself
        letter, data = read_frame(connection, MOST_EVENT)
        try:
            name, settings = hook_settings(head.words, head.environ)
            if letter != b"I" or (settings.store and store_file(settings.store) != self._path):
                raise UsageError("this server has another store")
            asked = _Asked(self, head.cwd, name, settings)
        except UsageError as error:
            send_frame(connection, b"B", texts(str(error)))
            return
        self.calls += 1
        was_shown = False
        try:
            text = "" if settings.mode == "off" else _answer(name, data, head, asked)
            send_frame(connection, b"T", text.encode())
            was_shown = read_frame(connection, _MOST_WORD)[0] == b"S"
        finally:
            asked.end(was_shown=was_shown)
        tidy_once_a_day(settings)

    def close(self) -> None:
        """The server ends."""
        with self._lock:
            held = list(self._held.values())
            self._held.clear()
        for conversation in held:
            conversation.sessions.close_all()

    def borrow(self, name: Name, settings: Settings) -> _Conversation:
        """The sessions of a conversation, which stay until they are given back."""
        with self._lock:
            held = self._held.get(name)
            if held is None:
                sessions = Sessions(name[1], store=self._path, policy=chosen_policy(settings), local=True, host=name[2])
                held = self._held[name] = _Conversation(sessions)
            self._held.move_to_end(name)
            held.users += 1
            return held

    def give_back(self, name: Name, held: _Conversation, *, keep: bool) -> None:
        """`keep`: the conversation is to be held for its next event, as long as there is room."""
        with self._lock:
            held.users -= 1
            if not keep and self._held.get(name) is held:
                del self._held[name]
            gone = [] if held.users or self._held.get(name) is held else [held]
            for other, conversation in list(self._held.items()):
                if len(self._held) > MOST_CONVERSATIONS and not conversation.users:
                    gone.append(self._held.pop(other))
        for conversation in gone:
            conversation.sessions.close_all()


class _Asked:
    """The `Sessions` of one event."""

    def __init__(self, hooks: ServedHooks, root: str, host: str, settings: Settings) -> None:
        self._hooks, self._root, self._host, self._settings = hooks, root, host, settings
        chosen_policy(settings)  # UsageError
        self._borrowed: dict[str, _Conversation] = {}
        self._got: dict[tuple[str, str], Session] = {}
        self._ended: set[str] = set()

    def get(self, conversation: str, agent: str = "main") -> Session:
        """As `Sessions` does."""
        name, got = self._name(conversation), (conversation, agent)
        if conversation not in self._borrowed:
            self._borrowed[conversation] = self._hooks.borrow(name, self._settings)
        self._got[got] = self._borrowed[conversation].sessions.get(conversation, agent)
        return self._got[got]

    def close(self, conversation: str) -> None:
        """As `Sessions` does."""
        self.get(conversation)
        self._ended.add(conversation)

    def end(self, *, was_shown: bool) -> None:
        """The event is over. What may not have been shown is shown again when the session goes on."""
        for (conversation, _), session in self._got.items():
            for failed in session.reader.unlogged():
                failures.note(conversation, failed.cause, failed.detail)
            session.reader.close(in_order=was_shown)
        for conversation, held in self._borrowed.items():
            keep = was_shown and conversation not in self._ended
            self._hooks.give_back(self._name(conversation), held, keep=keep)

    def _name(self, conversation: str) -> Name:
        settings = self._settings
        return conversation, self._root, self._host, settings.policy, settings.mode, settings.clip


def _answer(name: str, data: bytes, head: CallHead, asked: _Asked) -> str:
    try:
        return hook_answer(name, data, cast("Sessions", asked))
    except Exception as error:  # the host goes on as without us
        failures.note_error(f"hook {' '.join(head.words)}", error)
        return ""
