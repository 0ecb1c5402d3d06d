"""GitHub Copilot CLI: `~/.copilot/session-state/*/events.jsonl`. It does not record the input tokens of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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


# The line after a command's output, which the host also strips of blank lines at both ends.
_EXIT = re.compile(r"\n<shellId: \S+ completed with exit code (-?\d+)>\Z")
_MATTERS = ("user.message", "assistant.message", "tool.execution_complete", "hook.start", "session.")
_TOO_LARGE = ("Output too large to read ", "File too large to read ")


def exit_code(text: str) -> int | None:
    """Return the exit status in a command's result, or None if the command has not ended."""
    found = _EXIT.search(text[-200:])
    return int(found[1]) if found else None


def without_exit(text: str) -> tuple[str, str, str]:
    """Return (head, body, tail) of a command's result. The line with the exit status comes from the host."""
    found = _EXIT.search(text, max(0, len(text) - 200))
    end = found.start() if found else len(text)
    return "", text[:end], text[end:]


def is_too_large(text: str) -> bool:
    """Return True if the host shows a note, and at most a preview, instead of the result."""
    return text.startswith(_TOO_LARGE)


class CopilotEvents:
    """The events of a session's file that concern one reader. `agent`: a sub-agent's ID; "" for the main agent. `at`:
    the time of a hook's event, in milliseconds since the epoch."""

    def __init__(self, agent: str, at: object) -> None:
        self.messages: list[dict[str, Any]] = []  # as Copilot sends them to the model, in the shape of OpenAI's chat
        self.batch = ""  # the ID of the last message with calls
        self.is_compacting = False  # a summary is being written; results that come meanwhile stay when it is done
        self.has_hook = False  # the file has everything that happened before the hook's event
        self._agent, self._at, self._half = agent, at, ""
        self._pending: dict[str, tuple[str, Any]] = {}  # calls without a result: ID -> (tool, arguments)
        self._summarised = 0  # messages that the summary will replace

    def add(self, lines: Iterable[str]) -> None:
        """Add the next lines of the file. The last one may be half written."""
        for part in lines:
            line = self._half + part
            self._half = "" if line.endswith("\n") else line
            if not self._half and any(word in line for word in _MATTERS):
                row = json.loads(line)
                if (row.get("agentId") or "") == self._agent:
                    self._add(row["type"], row["data"])

    def find_call(self, name: str, arguments: Any) -> tuple[bool, str | None]:
        """Return (True if the file has this call without a result, its ID). The ID is None if parallel calls are
        equal."""
        ids = [call_id for call_id, call in self._pending.items() if call == (name, arguments)]
        return bool(ids), ids[0] if len(ids) == 1 else None

    def _add(self, kind: str, data: Data) -> None:
        if kind == "user.message":
            self.messages.append({"role": "user", "content": data.get("transformedContent") or data.get("content")})
        elif kind == "assistant.message":
            self._add_answer(data)
        elif kind == "tool.execution_complete":
            shown = block_text(object_in(data.get("result")).get("content")) or ""
            self.messages.append({"role": "tool", "tool_call_id": data["toolCallId"], "content": shown})
            self._pending.pop(data["toolCallId"], None)
        elif kind == "hook.start":
            self.has_hook |= data["hookType"] == "postToolUse" and data["input"]["timestamp"] == self._at
        elif kind == "session.compaction_start":
            self.is_compacting, self._summarised = True, len(self.messages)
        elif kind == "session.compaction_complete":
            self.is_compacting = False
            if data.get("success") is not False:
                self.messages = self.messages[self._summarised :]
        elif kind == "session.resume":
            self.is_compacting = False  # the program that wrote the summary has ended
        elif kind in (*_COMPACTS, *_GOES_BACK):
            self.messages = []  # the event does not reliably say how far, so only later messages count

    def _add_answer(self, data: Data) -> None:
        calls = []
        for asked in map(object_in, list_in(data.get("toolRequests"))):
            call_id, name, arguments = str(asked["toolCallId"]), str(asked["name"]), asked.get("arguments")
            self.batch, self._pending[call_id] = str(data.get("messageId")), (name, arguments)
            calls.append({"id": call_id, "function": {"name": name, "arguments": json.dumps(arguments)}})
        message = {"role": "assistant", "content": data.get("content") or ""}
        self.messages.append({**message, "tool_calls": calls} if calls else message)
