"""The server's end of the short way: judges the calls of clients without Python, as `run` and the shims judge theirs.

    way = ShortWay("/home/u/.local/state/readcache/readcache.db")
    way.converse(connection)                   # one call; in a thread of its own

Paths are only names here: the server opens and runs nothing of the client's.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections import Counter
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Protocol

from readcache import __version__
from readcache.log.reader import Reader
from readcache.log.telemetry import tell_failed
from readcache.process import failures
from readcache.process.buffered import rules_of
from readcache.process.plan import Caller, Plan, plan_call
from readcache.process.tidy import tidy_once_a_day
from readcache.serve import http
from readcache.serve.logs import OpenLog, OpenLogs
from readcache.serve.short_client import FrameClient
from readcache.process.virtual import is_named_virtual

_known_rules = lru_cache(maxsize=256)(rules_of)


class Hooks(Protocol):
    """Answers hooks, as `ServedHooks` does."""

    calls: int  # that were answered

    def converse(self, caller: Caller, client: FrameClient) -> None:
        """Answers one event. OSError when the connection breaks."""

    def __len__(self) -> int:
        """How many conversations are held for the next event."""

    def close(self) -> None:
        """The server ends."""


class FrameServer:
    """Judges the calls of any number of clients by the log in one store, whose absolute path is given. Safe to call
    from any thread. `hooks`: None where none are answered. `sessions`: the conversations whose calls are judged; None
    for all of them."""

    def __init__(self, store: str, hooks: Hooks | None = None, sessions: frozenset[str] | None = None) -> None:
        self._store, self._hooks, self._sessions = store, hooks, sessions
        self.logs = OpenLogs(store)
        self.causes: Counter[str] = Counter()  # why clients did without us
        self._calls, self._began = 0, time.time()

    def converse(self, connection: socket.socket, silent: AbstractContextManager[None] | None = None) -> None:
        """One connection, until it is of no more use. `silent` is entered until its head has come. OSError when it
        breaks."""
        with silent or contextlib.nullcontext():
            is_post = connection.recv(1, socket.MSG_PEEK) == http.FIRST
            client = http.HttpClient(connection) if is_post else FrameClient(connection)
            head = client.read_head()
        if head is None:
            return
        try:
            if head.version != __version__:
                client.refuse("version")
            elif head.store not in ("", self._store):
                client.refuse("store")
            elif head.caller.kind == "status":
                client.send(b"T", json.dumps(self._status()).encode())
            elif head.caller.kind == "hook" and self._hooks is not None:
                self._hooks.converse(head.caller, client)
            else:
                self._serve(head.caller, client)
        finally:
            if client.cause:
                self.causes[client.cause] += 1

    def close(self) -> None:
        """The server ends."""
        if self._hooks is not None:
            self._hooks.close()
        self.logs.close()

    def _status(self) -> dict[str, object]:
        calls, conversations = (self._hooks.calls, len(self._hooks)) if self._hooks is not None else (0, 0)
        told = {"readcache": __version__, "store": self._store, "began": self._began, "causes": dict(self.causes)}
        return told | {"calls": self._calls + calls, "readers": len(self.logs), "conversations": conversations}

    def _serve(self, caller: Caller, client: FrameClient) -> None:
        self._calls += 1
        plan = plan_call(caller, is_named_virtual)
        if plan is None:
            client.refuse()
        elif self._sessions is not None and plan.settings.session not in self._sessions:
            client.refuse("session")
        else:
            with self.logs.use(plan.settings.session, plan.settings.agent) as open_log:
                self._follow(plan, client, open_log)
            tidy_once_a_day(plan.settings)

    def _follow(self, plan: Plan, client: FrameClient, open_log: OpenLog) -> None:
        """From the verdict on."""
        try:
            # Before the verdict: with it the command runs, and the next one may be here as soon as it has ended. Until
            # it is logged what a command wrote, the next one waits for that.
            with open_log.waiting(client) if plan.reading.writes else contextlib.nullcontext():
                client.send_verdict(plan)
                if client.next_letter() == b"E":  # an output must still be judged
                    open_log.has_arrived(client)
                if (end := client.read_end()) is None:
                    return
                status, output = end
                if output is not None:
                    _judge(plan, status, output, client, open_log)
                elif plan.reading.writes:
                    _reader(plan, open_log, client).note_writes(plan.call("", status))
        except OSError:
            pass  # a reply that was not printed is never committed
        except Exception as error:
            failures.note_error(plan.settings.session, error)
            tell_failed(plan.settings.host)
        finally:
            # Those that the store has not taken yet; when it does, they are in the log as well.
            for failed in open_log.take_new_failures():
                failures.note(plan.settings.session, failed.cause, failed.detail)


def _judge(plan: Plan, status: int, output: bytes, client: FrameClient, open_log: OpenLog) -> None:
    """Have the client print the reply, and commit it if it did. OSError."""
    try:
        if (text := plan.text(output)) is not None:
            call, reader = plan.call(text, status), _reader(plan, open_log, client)
            with open_log.waiting(client):
                pending = reader.judge(call, began=plan.settings.began)
                reply = pending.reply
                omits = reply.outcome.value != "full"
                at = _show(reply.text.encode("utf-8", "replace") if omits else None, client, open_log)
                if at is not None:
                    pending.commit(at)
    finally:
        if client.answered_at is None:  # it cannot be judged, or we failed
            _show(None, client, open_log)


def _show(text: bytes | None, client: FrameClient, open_log: OpenLog) -> float | None:
    """Have the client print a text, None for the real output. Return when the reader had it, None if it was not printed
    to its end. OSError."""
    client.answer(text)
    client.next_letter()
    open_log.has_arrived(client)
    return client.read_shown(is_full=text is None)


def _reader(plan: Plan, open_log: OpenLog, client: FrameClient) -> Reader:
    named = plan.settings._replace(agent="", store="", batch="", began=0.0)  # what no rule depends on
    return open_log.reader(_known_rules(named), client)
