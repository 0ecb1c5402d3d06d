"""Codex CLI: the rollouts `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`. A sub-agent has a file of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from readcache.messages.messages import last_compaction, visible_to_model
from readcache.transcripts.codex_rollout import is_cut
from readcache.transcripts.content import Content
from readcache.transcripts.patches import patch_writes
from readcache.transcripts.records import AskedCommand, AskedTool, RecordedCall, Recording
from readcache.transcripts.turns import Turns, Usage
from readcache.transcripts.values import block_text, epoch_of, int_in, list_in, object_in, said_in

Payload = Mapping[str, Any]
_KINDS = ("session_meta", "response_item", "turn_context", "event_msg", "compacted")
_SHELLS = ("exec_command", "shell_command", "shell", "local_shell", "container.exec")
_WORDS = ("bash", "sh", "zsh")  # of ["bash", "-lc", COMMAND]
# What Codex puts in front of a command's output: `Chunk ID`, `Wall time`, the status, the size, and this line.
_HEAD = re.compile(r"\A(?:[A-Z][A-Za-z ]+:? [^\n]*\n){1,6}?Output:\n")
_STATUS = re.compile(r"(?:Process exited with code|Exit code:) (\d+)")
_NEVER_JUDGED = ("update_plan", "apply_patch", "view_image")


def is_codex(row: Mapping[str, Any]) -> bool:
    """True for a line of a rollout."""
    return row.get("type") in _KINDS and isinstance(row.get("payload"), dict)


def load_codex(content: Content) -> Iterator[Recording]:
    """One recording."""
    rollout = _Rollout()
    for line, row in content.objects():
        if not isinstance(row.get("payload"), dict):
            content.damage.add(content.path, line)
            continue
        rollout.take(str(row.get("type")), row["payload"], row.get("timestamp"))
    yield Recording(
        rollout.name or content.path,
        "codex",
        rollout.turns.finished(),
        rollout.reader,
        "codex",
        rollout.since,
        rollout.turns.first_call,
    )


class _Rollout:
    def __init__(self) -> None:
        self.turns = Turns()
        self.name, self.reader = "", "main"
        self.since: float | None = None
        self._cwd, self._paid = "/", 0

    def take(self, kind: str, payload: Payload, at: object) -> None:
        """The next line."""
        self.since = self.since if self.since is not None else epoch_of(at)
        if kind in ("session_meta", "turn_context"):
            self._cwd = str(payload.get("cwd") or self._cwd)
            self.name = self.name or str(payload.get("id") or "")
            self.reader = self.name if "subagent" in object_in(payload.get("source")) else self.reader
        elif kind == "compacted":
            history = visible_to_model([object_in(item) for item in list_in(payload.get("replacement_history"))])
            self.turns.cut(frozenset(str(item["call_id"]) for item in history if "call_id" in item))
        elif kind == "response_item":
            self._item(payload)
        elif payload.get("type") == "token_count":
            self._pay(object_in(payload.get("info")))
        elif payload.get("type") == "thread_rolled_back":  # how far is not told in a way to rely on
            self.turns.cut(compacts=False)

    def _pay(self, info: Payload) -> None:
        """The same numbers come again whenever a limit was looked at."""
        total = int_in(object_in(info.get("total_token_usage")).get("total_tokens")) or 0
        last = object_in(info.get("last_token_usage"))
        if total == self._paid or not last:
            return
        self._paid = total
        cached = int_in(last.get("cached_input_tokens")) or 0
        fresh = (int_in(last.get("input_tokens")) or 0) - cached
        self.turns.pay(Usage(fresh, cache_read=cached, output=int_in(last.get("output_tokens")) or 0))

    def _item(self, item: Payload) -> None:
        kind, name = str(item.get("type")), str(item.get("name"))
        if last_compaction(item) is not None:
            self.turns.cut()
        if kind in ("function_call", "custom_tool_call", "local_shell_call"):
            given = object_in(item.get("arguments") or item.get("action")) or {"input": str(item.get("input") or "")}
            cwd = self._cwd
            name = "shell" if kind == "local_shell_call" else name
            self.turns.call(
                str(item.get("call_id")),
                lambda call_id, output, batch: _call(call_id, output, batch, name, given, cwd),
                len(said_in(given)),
            )
        elif kind.endswith("_call_output"):
            self.turns.result(str(item.get("call_id")), _output_of(item.get("output")))
        elif kind == "message" and item.get("role") != "assistant":
            self.turns.type(sum(len(str(object_in(part).get("text"))) for part in list_in(item.get("content"))))
        elif kind in ("message", "reasoning"):
            self.turns.answer()


def _output_of(value: object) -> str:
    """Older versions gave the model an object with the text in it."""
    inner = object_in(value).get("output") if isinstance(value, str) else None
    if isinstance(inner, str):
        return inner
    if isinstance(value, dict):
        value = value.get("content") or value.get("output")
    parts = [{**object_in(part), "type": "text"} for part in list_in(value)]
    return block_text(parts or value) or ""


def _call(call_id: str, output: str, batch: str, name: str, given: Payload, cwd: str) -> RecordedCall:
    said = said_in(given)
    command = _command_in(given)
    if name in _SHELLS and command is not None:
        inner = str(given.get("workdir") or given.get("working_directory") or "")
        where = os.path.join(cwd, inner) if inner else cwd
        head = _HEAD.match(output)
        status = _STATUS.search(head[0]) if head else None
        asked = AskedCommand(
            command,
            where,
            head[0].count("\n") if head else 0,
            int(status[1]) if status else None if head else 0,
        )
        ended = not (head and status is None) and not is_cut(output)
        return RecordedCall(call_id, "bash", asked, f"{command}\n{said}", output, batch, complete=ended)
    if name == "apply_patch":
        patch = str(given.get("input") or given.get("patch") or "")
        failed = not output.lstrip().startswith(("Success", "Done", "Exit code: 0"))
        return RecordedCall(call_id, name, None, said, output, batch, () if failed else patch_writes(patch, cwd))
    tool = None if name in _NEVER_JUDGED or not output else AskedTool(name, given)
    return RecordedCall(call_id, name, tool, said, output, batch)


def _command_in(given: Payload) -> str | None:
    command = given.get("cmd", given.get("command"))
    words = [str(word) for word in list_in(command)]
    if len(words) == 3 and os.path.basename(words[0]) in _WORDS and words[1] in ("-c", "-lc"):
        return words[2]
    return command if isinstance(command, str) else " ".join(words) or None
