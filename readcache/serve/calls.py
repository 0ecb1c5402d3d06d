"""The server's end of the frame protocol: judge the calls of clients without Python, as `run` and the shims do.

    server = FrameServer("/home/u/.local/state/readcache/readcache.db")
    server.converse(connection)                # one call; in a thread of its own

Paths are only names here: the server opens none of the client's files and runs none of its commands.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections import Counter
from contextlib import AbstractContextManager
from functools import lru_cache

from readcache import __version__
from readcache.log.reader import Reader
from readcache.log.telemetry import tell_failed
from readcache.process import failures
from readcache.process.buffered import rules_of
from readcache.process.plan import Caller, Plan, plan_call
from readcache.process.tidy import tidy_once_a_day
from readcache.process.virtual import is_named_virtual
from readcache.serve import http
from readcache.serve.hooks import ServedHooks
from readcache.serve.logs import OpenLog, OpenLogs
from readcache.serve.short_client import FrameClient

_known_rules = lru_cache(maxsize=256)(rules_of)


class FrameServer:
    """Judge the calls of any number of clients by the logs in one store. Safe to call from any thread.

    `store`: its absolute path. `hooks`: answers hooks, or None to answer no hooks. `sessions`: the conversations whose
    calls are judged, or None for all.
    """

    def __init__(self, store: str, hooks: ServedHooks | None = None, sessions: frozenset[str] | None = None) -> None:
        self._store, self._hooks, self._sessions = store, hooks, sessions
        self.logs = OpenLogs(store)
        self.causes: Counter[str] = Counter()  # why clients continued without readcache
        self._calls, self._began = 0, time.time()

    def converse(self, connection: socket.socket, silent: AbstractContextManager[None] | None = None) -> None:
        """Serve one connection to its end. `silent` is entered until its head has arrived. Raise OSError if the
        connection breaks."""
        with silent or contextlib.nullcontext():
            is_post = connection.recv(1, socket.MSG_PEEK) == http.FIRST
            client = http.HttpClient(connection) if is_post else FrameClient(connection)
            head = client.read_head()
        if head is None:
            return
        version, store, caller = head
        try:
            if version != __version__:
                client.refuse("version")
            elif store not in ("", self._store):
                client.refuse("store")
            elif caller.kind == "status":
                client.send(b"T", json.dumps(self._status()).encode())
            elif caller.kind == "hook" and self._hooks is not None:
                self._hooks.converse(caller, client)
            else:
                self._serve(caller, client)
        finally:
            if client.cause:
                self.causes[client.cause] += 1

    def close(self) -> None:
        """Close the logs and end all conversations, because the server ends."""
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
        """Send the verdict, and judge or log the call when its command has ended."""
        try:
            # Start to wait before the verdict: the verdict starts the command, and the next call may arrive as soon as
            # the command ends. The next call waits until this command's writes are logged.
            with open_log.waiting(client) if plan.reading.writes else contextlib.nullcontext():
                client.send_verdict(plan)
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
            # Note failures that the store has not taken yet. They also enter the log when the store takes them.
            for failed in open_log.take_new_failures():
                failures.note(plan.settings.session, failed.cause, failed.detail)


def _judge(plan: Plan, status: int, output: bytes, client: FrameClient, open_log: OpenLog) -> None:
    """Have the client print the reply, and commit the reply if it was printed. Raise OSError if the connection
    breaks."""
    try:
        if (text := plan.text(output)) is not None:
            call, reader = plan.call(text, status), _reader(plan, open_log, client)
            with open_log.waiting(client):
                pending = reader.judge(call, began=plan.settings.began)
                reply = pending.reply
                shown = None if reply.is_output else reply.text.encode("utf-8", "replace")
                if (at := client.show(shown)) is not None:
                    pending.commit(at)
    finally:
        if not client.is_answered:  # the output cannot be judged, or readcache failed
            client.show(None)


def _reader(plan: Plan, open_log: OpenLog, client: FrameClient) -> Reader:
    named = plan.settings._replace(store="", batch="", began=0.0)  # no rule depends on these fields
    return open_log.reader(_known_rules(named), client)
