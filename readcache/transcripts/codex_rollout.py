"""The file in which Codex CLI keeps a session: what the model still sees, and how commands ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_MATTERS = ('"response_item"', '"compacted"', '"CommandExecution"', '"FileChange"', '"thread_rolled_back"')
# At the beginning of the output for a hook, and in the text for the model.
_CUT = re.compile(
    r"\AWarning: truncated output \(|^(?:Total output lines: \d+$|.*…\d+ (?:tokens|chars|lines?) truncated…)",
    re.MULTILINE,
)


def is_cut(output: str) -> bool:
    """True if Codex omitted the middle of a command's output."""
    return _CUT.search(output) is not None


class Rollout:
    """What the session's file tells about the call `call_id`."""

    def __init__(self, path: str, call_id: str) -> None:
        self.messages: list[dict[str, Any]] = []  # as the model will be sent them
        self.exit_code: int | None = None  # of the call; None: it is not known
        self.written: list[tuple[str, str]] = []  # (path, call) of patches since the last command before this one
        self.has_answer = False  # a part of the output was shown already, and the command went on in the background
        self.batch = ""  # the first of the calls that the model made at once
        group = ""
        for kind, payload in _entries(path):
            if kind == "compacted":
                self.messages = list(payload.get("replacement_history") or ())
            elif kind == "response_item":
                self.messages.append(payload)
                is_call = payload.get("type") in ("function_call", "custom_tool_call")
                group = (group or payload.get("call_id", "")) if is_call else ""
                if payload.get("call_id") == call_id:
                    self.batch, self.has_answer = group or self.batch, not is_call
            elif payload.get("type") == "thread_rolled_back":
                self.messages = []  # how far is not told in a way to rely on; what is shown from now on counts
            elif payload.get("type") == "item_completed":
                self._add_item(payload["item"], call_id)

    def _add_item(self, item: Mapping[str, Any], call_id: str) -> None:
        if item.get("type") == "FileChange":
            self.written += [(path, str(item.get("id"))) for path in item.get("changes", ())]
        elif item.get("type") == "CommandExecution" and item.get("id") == call_id:
            self.exit_code = item.get("exit_code")
        elif item.get("type") == "CommandExecution":
            self.written = []


def _entries(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(type, payload) of the lines that matter here."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if any(word in line for word in _MATTERS):
                entry = json.loads(line)
                yield entry["type"], entry["payload"]
