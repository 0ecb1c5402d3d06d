"""Finds the reader of a call to the MCP server. The protocol does not tell: sub-agents and other conversations of a
host may share one server, and each saw only its own results.

So nothing is omitted unless the call's `_meta` names its reader, or the server was started with `--one-reader`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from readcache import Mode, Outcome, Policy, Reply, Session, Sessions, UsageError
from readcache.process.state import is_off

# Keys of a call's `_meta`.
CONVERSATION, READER = "readcache/conversation", "readcache/reader"
CALL_ID, BATCH = "readcache/call_id", "readcache/batch"
ANYBODY = "readers that cannot be told apart"
# Seconds. No model answers that fast: a call that comes so soon after a result was made before the model saw that.
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class McpCaller:
    """One call: the session that answers it, and what to tell that."""

    session: Session
    call_id: str
    batch: str


class McpReaders:
    """The sessions of a server. `one_reader`: one conversation alone calls it, and its host tells `compacted`."""

    def __init__(
        self,
        root: str,
        *,
        policy: Policy,
        store: str | None = None,
        conversation: str = "",
        agent: str = "main",
        one_reader: bool = False,
        host: str = "mcp",
    ) -> None:
        most = Sessions.MOST
        self.sessions = Sessions(
            root, store=store, policy=policy, local=True, host=host, is_off=is_off, most_readers=most
        )
        self._conversation = conversation or f"mcp-{os.urandom(8).hex()}"
        shown = policy if policy.mode is Mode.OFF else replace(policy, mode=Mode.ADVISE)
        # In memory, since nothing will use it.
        self._anybody = Session(root, session_id=self._conversation, agent_id=ANYBODY, policy=shown, local=True)
        self._agent, self._one_reader = agent, one_reader
        self._answers: dict[str, Session] = {}  # by call: replies that are not written yet

    def session_of(self, meta: Mapping[str, Any]) -> Session:
        """The session that answers a call with this `_meta`."""
        reader = meta.get(READER)
        if not (reader or self._one_reader):
            return self._anybody
        return self.sessions.get(str(meta.get(CONVERSATION) or self._conversation), str(reader or self._agent))

    @contextmanager
    def caller(self, meta: Mapping[str, Any]) -> Iterator[McpCaller]:
        """The caller, while its call is answered. Calls at one time, or with no pause between, are one batch. Enter it
        in the event loop's thread, when the call arrives."""
        session = self.session_of(meta)
        batch = session.notes = session.notes if isinstance(session.notes, _Batch) else _Batch()
        call_id = str(meta.get(CALL_ID) or f"mcp-{os.urandom(6).hex()}")
        name = batch.begin()
        try:
            yield McpCaller(session, call_id, str(meta.get(BATCH) or name))
        finally:
            batch.end()

    def answered(self, caller: McpCaller, reply: Reply) -> None:
        """A call's result is on its way to the client. It counts as shown once it is written."""
        if reply.outcome is not Outcome.FULL:
            self._answers[reply.call_id] = caller.session

    def written(self, text: str) -> None:
        """The client was written this text."""
        for call_id in [name for name in list(self._answers) if json.dumps(name) in text]:
            with suppress(UsageError):  # the client cancelled it before it was logged
                self._answers.pop(call_id).commit(call_id)

    def close(self) -> None:
        """Ends all conversations."""
        self.sessions.close_all()
        self._anybody.close()


class _Batch:
    """The calls that one model message may have made, as far as time tells."""

    def __init__(self) -> None:
        self._name, self._under_way, self._ended = "", 0, float("-inf")

    def begin(self) -> str:
        """The batch of a call that begins now."""
        if not self._under_way and time.monotonic() - self._ended > PAUSE:
            self._name = f"mcp-{os.urandom(4).hex()}"
        self._under_way += 1
        return self._name

    def end(self) -> None:
        """A call was answered."""
        self._under_way -= 1
        self._ended = time.monotonic()
