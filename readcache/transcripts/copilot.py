"""GitHub Copilot CLI: `~/.copilot/session-state/*/events.jsonl`. It does not record the input tokens of requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from readcache.transcripts.records import Content, Form, Recording, Turns
from readcache.transcripts.values import block_text, epoch_of, list_in, object_in

Data = Mapping[str, Any]
_COMPACTS = ("session.compaction_complete", "session.truncation")
_GOES_BACK = ("session.context_cleared", "session.snapshot_rewind")  # the event does not say how far


def is_copilot(row: Mapping[str, Any]) -> bool:
    """Return True for an event of a session."""
    kind = str(row.get("type"))
    return isinstance(row.get("data"), dict) and kind.startswith(("session.", "assistant.", "tool.execution", "user."))


def load_copilot(content: Content) -> Iterator[Recording]:
    """Yield a recording of the agent, and one for each sub-agent."""
    readers: dict[str, Turns] = {}
    began: float | None = None
    name, cwd = "", "/"
    for _, row in content.objects():
        data = object_in(row.get("data"))
        began = epoch_of(row.get("timestamp")) if began is None else began
        if row.get("type") in ("session.start", "session.resume"):
            cwd = str(object_in(data.get("context")).get("cwd") or cwd)
            name = name or str(data.get("sessionId") or "")
        reader = str(data.get("agentId") or data.get("parentToolCallId") or "main")
        turns = readers.setdefault(reader, Turns())
        turns.at(row.get("timestamp"))
        _take(turns, str(row.get("type")), data, cwd)
    for reader, turns in readers.items():
        turns.since = began
        found = turns.recording(name or content.path, "copilot", agent="copilot-cli", reader=reader)
        if found.items or reader == "main":
            yield found


FORM = Form("copilot", is_copilot, load_copilot, ("COPILOT_HOME", "~/.copilot", "session-state"))


def _take(turns: Turns, kind: str, data: Data, cwd: str) -> None:
    """Process the next event of a reader."""
    if kind == "user.message":
        turns.type(len(str(data.get("transformedContent") or data.get("content") or "")))
    elif kind == "assistant.message":
        turns.answer(len(str(data.get("content") or "")))
        for asked in map(object_in, list_in(data.get("toolRequests"))):
            arguments = asked.get("arguments")
            given = object_in(arguments) or {"input": str(arguments or "")}
            turns.tool(str(asked.get("toolCallId")), str(asked.get("name")), given, cwd)
    elif kind == "tool.execution_complete":
        output = block_text(object_in(data.get("result")).get("content")) or ""
        turns.result(str(data.get("toolCallId")), output, failed=data.get("success") is False)
    elif kind in _COMPACTS and data.get("success") is not False:
        turns.trim()
    elif kind in _GOES_BACK:
        turns.trim(compacts=False)
