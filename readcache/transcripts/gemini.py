"""The file in which Gemini CLI keeps a chat: what the model still sees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

OUTPUT = "<untrusted_context>\nOutput: "  # in front of what a command printed


def chat_messages(lines: Iterable[str]) -> tuple[list[dict[str, Any]], str]:
    """The history as the model is sent it, in the shape of OpenAI's chats; and the last message's id."""
    history: dict[str, Any] = {}
    for line in lines:
        entry = json.loads(line)
        if "messages" in entry.get("$set", ()):
            history = {message["id"]: message for message in entry["$set"]["messages"]}
        elif "id" in entry:
            history[entry["id"]] = entry  # a second time when its calls are done
    out: list[dict[str, Any]] = []
    for message in history.values():
        for call in message.get("toolCalls", ()):
            function = {"name": call["name"], "arguments": json.dumps(call.get("args", {}))}
            out.append({"role": "assistant", "tool_calls": [{"id": call["id"], "function": function}]})
        content = message.get("content", ())
        parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else list(content)
        out += [_as_chat(part) for part in parts]
    return out, next(reversed(history), "")


def _as_chat(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a message, a result or a text, as a message of OpenAI's."""
    answer = part.get("functionResponse")
    if answer is None:
        return {"role": "user", "content": part.get("text", "")}
    texts = [text for text in answer.get("response", {}).values() if isinstance(text, str)]
    shown = "\n".join(texts).replace(OUTPUT, OUTPUT.rstrip() + "\n", 1)  # a line of its own: the first of the output
    return {"role": "tool", "tool_call_id": answer.get("id", ""), "content": shown}
