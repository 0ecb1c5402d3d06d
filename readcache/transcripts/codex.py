"""Codex CLI: the rollouts `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`. A sub-agent has a file of its own.

`load_codex` makes a recording of a finished session. `Rollout` describes the current session to a hook.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from readcache.core.messages.messages import last_compaction, visible_to_model
from readcache.core.messages.tools import tool_use
from readcache.core.model.call import Frame
from readcache.transcripts.records import Content, Form, Recording, RequestSent, Turns
from readcache.transcripts.values import block_text, count_in, list_in, object_in, said_in

Payload = Mapping[str, Any]
_KINDS = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")
# Codex's header before a command's output: `Chunk ID`, `Wall time`, the status, the size, and this line. Version 0.116
# begins it with the command, which may have several lines.
_HEAD = re.compile(
    r"\A(?:Command: (?s:.*?)\n(?=(?:Chunk ID: [^\n]*\n)?Wall time: [\d.]+ seconds\n))?(?:[A-Z][^\n]*\n){1,6}?Output:\n"
)
_WENT_WELL = ("Success", "Done", "Exit code: 0")  # how the output of a successful patch starts
_STATUS = re.compile(r"(?:Process exited with code|Exit code:) (\d+)")
# A hook needs only lines that contain one of these, so the other lines are not parsed.
_MATTERS = ('"response_item"', '"compacted"', '"CommandExecution"', '"FileChange"', '"thread_rolled_back"')
# The warning starts the output that a hook gets. The other forms are in the text for the model.
_TRUNCATED = re.compile(
    r"\AWarning: truncated output \(|^(?:Total output lines: \d+$|.*…\d+ (?:tokens|chars|lines?) truncated…)",
    re.MULTILINE,
)


def is_codex(row: Mapping[str, Any]) -> bool:
    """Return True for a line of a rollout."""
    return row.get("type") in _KINDS and isinstance(row.get("payload"), dict)


def load_codex(content: Content) -> Iterator[Recording]:
    """Yield one recording."""
    session = _Session()
    for line, row in content.objects():
        if not isinstance(row.get("payload"), dict):
            content.damage.add(content.path, line)
            continue
        session.take(str(row.get("type")), row["payload"], row.get("timestamp"))
    yield session.turns.recording(session.name or content.path, "codex", reader=session.reader)


FORM = Form("codex", is_codex, load_codex, ("CODEX_HOME", "~/.codex", "sessions"))


class _Session:
    def __init__(self) -> None:
        self.turns = Turns()
        self.name, self.reader = "", "main"
        self._cwd, self._paid = "/", 0
        self._called: dict[str, tuple[str, str | None]] = {}  # call id -> the tool, the command

    def take(self, kind: str, payload: Payload, at: object) -> None:
        """Process the next line. `at`: its timestamp."""
        self.turns.at(at)
        if kind in ("session_meta", "turn_context"):
            self._cwd = str(payload.get("cwd") or self._cwd)
            self.name = self.name or str(payload.get("id") or "")
            self.turns.by(payload.get("model"))
            self.reader = self.name if "subagent" in object_in(payload.get("source")) else self.reader
        elif kind == "compacted":
            history = visible_to_model([object_in(item) for item in list_in(payload.get("replacement_history"))])
            self.turns.trim(frozenset(str(item["call_id"]) for item in history if "call_id" in item))
        elif kind == "response_item":
            self._item(payload)
        elif payload.get("type") == "token_count":
            self._pay(object_in(payload.get("info")))
        elif payload.get("type") == "thread_rolled_back":  # the line does not reliably say how far
            self.turns.trim(compacts=False)

    def _pay(self, info: Payload) -> None:
        """Record the tokens of the newest request."""
        # Codex repeats the last numbers whenever it checks a limit.
        total, last = count_in(info, "total_token_usage", "total_tokens"), object_in(info.get("last_token_usage"))
        if total == self._paid or not last:
            return
        self._paid = total
        cached = count_in(last, "cached_input_tokens")
        fresh = count_in(last, "input_tokens") - cached
        self.turns.pay(RequestSent(fresh, cache_read=cached, output=count_in(last, "output_tokens")))

    def _item(self, item: Payload) -> None:
        kind, name, call_id = str(item.get("type")), str(item.get("name")), str(item.get("call_id"))
        if last_compaction(item) is not None:
            self.turns.trim()
        if kind in ("function_call", "custom_tool_call", "local_shell_call"):
            given = object_in(item.get("arguments") or item.get("action")) or {"input": str(item.get("input") or "")}
            name = "shell" if kind == "local_shell_call" else name
            said, command = said_in(given), tool_use(name, given).command
            self._called[call_id] = name, command
            said = said if command is None or command in said else f"{command}\n{said}"
            self.turns.tool(call_id, name, given, self._cwd, said)
        elif kind.endswith("_call_output"):
            self._deliver(call_id, _output_of(item.get("output")))
        elif kind == "message" and item.get("role") != "assistant":
            self.turns.type(sum(len(str(object_in(part).get("text"))) for part in list_in(item.get("content"))))
        elif kind in ("message", "reasoning"):
            self.turns.answer()

    def _deliver(self, call_id: str, output: str) -> None:
        name, command = self._called.get(call_id, ("", None))
        if command is None:
            failed = name == "apply_patch" and not output.lstrip().startswith(_WENT_WELL)
            self.turns.result(call_id, output, failed=failed)
            return
        head = _HEAD.match(output)
        status = _STATUS.search(head[0]) if head else None
        code, whole = int(status[1]) if status else None if head else 0, not (head and status is None)
        frame = Frame(head[0].count("\n")) if head else None
        self.turns.result(call_id, output, exit_code=code, complete=whole and not is_truncated(output), frame=frame)


def _output_of(value: object) -> str:
    """Return the text of an output. Older versions of Codex gave the model an object that contains the text."""
    inner = object_in(value).get("output") if isinstance(value, str) else None
    if isinstance(inner, str):
        return inner
    if isinstance(value, dict):
        value = value.get("content") or value.get("output")
    parts = [{**object_in(part), "type": "text"} for part in list_in(value)]
    return block_text(parts or value) or ""


def is_truncated(output: str) -> bool:
    """Return True if Codex omitted the middle of a command's output."""
    return _TRUNCATED.search(output) is not None


class Rollout:
    """The facts in a session's file about the call `call_id`."""

    def __init__(self, lines: Iterable[str], call_id: str) -> None:
        self.messages: list[dict[str, Any]] = []  # as Codex will send them to the model
        self.exit_code: int | None = None  # of the call; None: not known
        self.written: list[tuple[str, str]] = []  # (path, call) of patches since the last command before this one
        self.has_answer = False  # part of the output was already shown, and the command runs on in the background
        self.batch = ""  # the ID of the first of its parallel calls
        group = ""
        for line in lines:
            if not any(word in line for word in _MATTERS):
                continue
            entry = json.loads(line)
            kind, payload = entry["type"], entry["payload"]
            if kind == "compacted":
                self.messages = list(payload.get("replacement_history") or ())
            elif kind == "response_item":
                self.messages.append(payload)
                is_call = payload.get("type") in ("function_call", "custom_tool_call")
                group = (group or payload.get("call_id", "")) if is_call else ""
                if payload.get("call_id") == call_id:
                    self.batch, self.has_answer = group or self.batch, not is_call
            elif payload.get("type") == "thread_rolled_back":
                self.messages = []  # the line does not reliably say how far, so only later messages count
            elif payload.get("type") == "item_completed":
                self._add_item(payload["item"], call_id)

    def _add_item(self, item: Mapping[str, Any], call_id: str) -> None:
        if item.get("type") == "FileChange":
            self.written += [(path, str(item.get("id"))) for path in item.get("changes", ())]
        elif item.get("type") == "CommandExecution" and item.get("id") == call_id:
            self.exit_code = item.get("exit_code")
        elif item.get("type") == "CommandExecution":
            self.written = []
