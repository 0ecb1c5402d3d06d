"""Find the reader of a call to the MCP server.

The MCP protocol does not say who called. Sub-agents and other conversations of a host may share one server, and each
saw only its own results. So nothing is omitted unless the call's `_meta` names its reader, or the server was started
with `--one-reader`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from readcache import Mode, Outcome, Policy, Reply, Session, Sessions, UsageError
from readcache.process.state import is_off

# Keys of a call's `_meta`.
CONVERSATION, READER = "readcache/conversation", "readcache/reader"
CALL_ID, BATCH = "readcache/call_id", "readcache/batch"
ANYBODY = "readers that cannot be told apart"
# Seconds. No model answers this fast. A call that arrives this soon after a result was made before the model saw it.
PAUSE = 0.05

Progress = Callable[[float, float, str], Awaitable[None]]  # (seconds so far, timeout in seconds, text)


async def _tell_nobody(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class McpCall:
    """One call: the session that answers it, and the call's IDs for the session."""

    session: Session
    call_id: str
    batch: str
    roots: Sequence[str]  # directories that the client allows
    progress: Progress


class McpReaders:
    """The sessions of a server. `one_reader`: True if only one conversation calls the server, and its host reports
    compactions with `compacted`."""

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
        self.sessions = Sessions(
            root, store=store, policy=policy, local=True, host=host, is_off=is_off, most_readers=Sessions.MOST
        )
        self._conversation = conversation or f"mcp-{os.urandom(8).hex()}"
        shown = policy if policy.mode is Mode.OFF else replace(policy, mode=Mode.ADVISE)
        # Its log is in memory, because nothing will use it later.
        self._anybody = Session(root, session_id=self._conversation, agent_id=ANYBODY, policy=shown, local=True)
        self._agent, self._one_reader = agent, one_reader
        self._answers: dict[str, Session] = {}  # call ID -> session, for replies that are not written yet

    def session_of(self, meta: Mapping[str, Any]) -> Session:
        """Return the session that answers a call with this `_meta`."""
        reader = meta.get(READER)
        if not (reader or self._one_reader):
            return self._anybody
        return self.sessions.get(str(meta.get(CONVERSATION) or self._conversation), str(reader or self._agent))

    @contextmanager
    def call(
        self, meta: Mapping[str, Any], roots: Sequence[str] = (), progress: Progress = _tell_nobody
    ) -> Iterator[McpCall]:
        """Yield a call while it is answered. Enter it in the event loop's thread, when the call arrives.

        Calls that overlap, or have no pause between them, belong to one batch.
        """
        session = self.session_of(meta)
        batch = session.notes = session.notes if isinstance(session.notes, _Batch) else _Batch()
        call_id = str(meta.get(CALL_ID) or f"mcp-{os.urandom(6).hex()}")
        with batch as name:
            yield McpCall(session, call_id, str(meta.get(BATCH) or name), roots, progress)

    def answered(self, session: Session, reply: Reply) -> None:
        """Record that a call's result is on its way to the client. It counts as shown when it is written."""
        if reply.outcome is not Outcome.FULL:
            self._answers[reply.call_id] = session

    def written(self, text: str) -> None:
        """Commit the replies in a text that was written to the client."""
        for call_id in [name for name in list(self._answers) if json.dumps(name) in text]:
            with suppress(UsageError):  # the client cancelled it before it was logged
                self._answers.pop(call_id).commit(call_id)

    def close(self) -> None:
        """End all conversations."""
        self.sessions.close_all()
        self._anybody.close()


class _Batch:
    """The calls that, judged by their times, may come from one model message. A context for each of them, with the name
    of its batch."""

    def __init__(self) -> None:
        self._name, self._under_way, self._ended = "", 0, float("-inf")

    def __enter__(self) -> str:
        if not self._under_way and time.monotonic() - self._ended > PAUSE:
            self._name = f"mcp-{os.urandom(4).hex()}"
        self._under_way += 1
        return self._name

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        self._ended = time.monotonic()
