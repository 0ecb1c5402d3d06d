"""GitHub Copilot CLI: `~/.copilot/session-state/*/events.jsonl`. It tells no tokens of single requests' input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from readcache.transcripts.content import Content
from readcache.transcripts.records import RecordedCall, Recording
from readcache.transcripts.tools import recorded_call
from readcache.transcripts.turns import Turns
from readcache.transcripts.values import block_text, epoch_of, list_in, object_in, said_in

Data = Mapping[str, Any]
_COMPACTS = ("session.compaction_complete", "session.truncation")
_GOES_BACK = ("session.context_cleared", "session.snapshot_rewind")  # how far is not told


def is_copilot(row: Mapping[str, Any]) -> bool:
    """True for an event of a session."""
    kind = str(row.get("type"))
    return isinstance(row.get("data"), dict) and kind.startswith(("session.", "assistant.", "tool.execution", "user."))


def load_copilot(content: Content) -> Iterator[Recording]:
    """One recording, and one for each sub-agent."""
    readers: dict[str, _Events] = {}
    since: float | None = None
    name, cwd = "", "/"
    for _, row in content.objects():
        data = object_in(row.get("data"))
        since = since if since is not None else epoch_of(row.get("timestamp"))
        if row.get("type") in ("session.start", "session.resume"):
            cwd = str(object_in(data.get("context")).get("cwd") or cwd)
            name = name or str(data.get("sessionId") or "")
        reader = str(data.get("agentId") or data.get("parentToolCallId") or "main")
        readers.setdefault(reader, _Events()).take(str(row.get("type")), data, cwd)
    for reader, events in readers.items():
        items, first = events.turns.finished(), events.turns.first_call
        if items or reader == "main":
            yield Recording(name or content.path, "copilot", items, reader, "copilot-cli", since, first)


class _Events:
    def __init__(self) -> None:
        self.turns = Turns()
        self._failed: dict[str, bool] = {}

    def take(self, kind: str, data: Data, cwd: str) -> None:
        """The next event."""
        if kind == "user.message":
            self.turns.type(len(str(data.get("transformedContent") or data.get("content") or "")))
        elif kind == "assistant.message":
            self.turns.answer(len(str(data.get("content") or "")))
            for asked in map(object_in, list_in(data.get("toolRequests"))):
                self._call(asked, cwd)
        elif kind == "tool.execution_complete":
            call = str(data.get("toolCallId"))
            self._failed[call] = data.get("success") is False
            self.turns.result(call, block_text(object_in(data.get("result")).get("content")) or "")
        elif kind in _COMPACTS and data.get("success") is not False:
            self.turns.cut()
        elif kind in _GOES_BACK:
            self.turns.cut(compacts=False)

    def _call(self, asked: Data, cwd: str) -> None:
        arguments = asked.get("arguments")
        given = object_in(arguments) or {"input": str(arguments or "")}

        def made(call_id: str, output: str, batch: str) -> RecordedCall:
            failed, name = self._failed.get(call_id, False), str(asked.get("name"))
            return recorded_call(call_id, output, batch, name=name, given=given, cwd=cwd, failed=failed)

        self.turns.call(str(asked.get("toolCallId")), made, len(said_in(given)))
