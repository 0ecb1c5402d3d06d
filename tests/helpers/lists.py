"""Message lists as harnesses keep them, from (call id, command, text of the result)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Raw = dict[str, Any]
Turn = tuple[str, str, str]
WORDS_IN_FRONT = "OBSERVATION:\n"  # of the harness, in the shape "blocks"
SHAPES_WITH_IDS = ("openai", "anthropic", "blocks")
SHAPES = (*SHAPES_WITH_IDS, "plain")


def message_list(shape: str, turns: Iterable[Turn]) -> list[Raw]:
    """The messages of a conversation; a turn without a command is what a user says."""
    out: list[Raw] = [{"role": "user", "content": "Please fix the tax"}]
    for call_id, command, text in turns:
        out += _SHAPES[shape](call_id, command, text) if command else [{"role": "user", "content": text}]
    return out


def _openai(call_id: str, command: str, text: str) -> list[Raw]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": text},
    ]


def _anthropic(call_id: str, command: str, text: str) -> list[Raw]:
    call = {"type": "tool_use", "id": call_id, "name": "bash", "input": {"command": command}}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]},
    ]


def _blocks(call_id: str, command: str, text: str) -> list[Raw]:
    """As SWE-agent and others do it: words of the harness around the output, results as lists of blocks."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    inner = [{"type": "text", "text": WORDS_IN_FRONT + text}, image]
    out = _anthropic(call_id, command, "")
    out[1]["content"] = [
        {"type": "tool_result", "tool_use_id": call_id, "content": inner},
        {"type": "text", "text": "Go on."},
    ]
    return out


def _plain(_: str, command: str, text: str) -> list[Raw]:
    """As mini-swe-agent does it: no ids."""
    end = "" if text.endswith("\n") else "\n"
    return [
        {"role": "assistant", "content": f"THOUGHT: I look.\n\n```bash\n{command}\n```"},
        {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{text}{end}</output>"},
    ]


_SHAPES = {"openai": _openai, "anthropic": _anthropic, "blocks": _blocks, "plain": _plain}
