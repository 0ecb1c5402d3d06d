"""LangChain's messages and tool results in the form that a session takes, and the header that deepagents adds to a
text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from readcache import Frame, Reply
from readcache.core.messages.editing import with_content_text
from readcache.core.model.tool_call import ToolCall
from readcache.hosts.tool_results import lines_left_out, put_back

# deepagents' read_file: "@@ lines 10-39 of 60 | next offset 39 @@", after notices if there are any.
_HEADER = re.compile(r"(?:\[[^\n]*\n)*@@ lines (\d+)-(\d+)(?: of (\d+))?([^\n]*)@@\n")
# Keys of a shell's artifact. If one is set, the output is not complete.
_TRUNCATED = ("truncated", "timed_out", "truncated_by_lines", "truncated_by_bytes", "output_file")
_ROLES = {"human": "user", "ai": "assistant"}
_WORDS = ("text", "thinking", "image", "image_url")  # blocks of an answer that are kept; its calls are in `tool_calls`
_KEPT = "readcache"  # the key in `response_metadata`, which the model is never sent


def asked_by(state: Any, call_id: str) -> str | None:
    """Return the ID of the model's message that made a call, or None if a program made it."""
    answer = next((m for m in reversed(messages_of(state)) if isinstance(m, AIMessage)), None)
    is_there = answer is not None and any(call["id"] == call_id for call in answer.tool_calls)
    return str(answer.id or call_id) if answer is not None and is_there else None


def messages_of(state: Any) -> Sequence[BaseMessage]:
    """Return the messages of an agent's state, which may have any type. Empty if it has none."""
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    return found if isinstance(found, (list, tuple)) else ()


def tool_result(message: ToolMessage, call: Mapping[str, Any], batch: str, cwd: str | None) -> ToolCall | None:
    """Return the result in the message, with the call that it answers, or None if it is not a text. `cwd`: the
    directory of its shell, if known."""
    text = _text(message)
    if text is None:
        return None
    artifact = message.artifact if isinstance(message.artifact, Mapping) else {}
    is_truncated, status, lines, frame = any(map(artifact.get, _TRUNCATED)), artifact.get("exit_code"), None, None
    if header := _HEADER.match(text):
        first, last = int(header[1]), int(header[2])
        lines, is_truncated = (first, None if header[2] == header[3] else last), "truncated mid-line" in header[4]
        head = header[0].count("\n")
        frame = Frame(head, text.removesuffix("\n").count("\n") + 1 - head - (last - first + 1))
    told = ToolCall(call["id"], call["name"], call["args"], text, batch, is_error=message.status == "error", cwd=cwd)
    status = status if isinstance(status, int) else None
    return replace(told, complete=not is_truncated, exit_code=status, lines=lines, frame=frame)


def with_reply(message: ToolMessage, reply: Reply, by: str) -> ToolMessage:
    """Return the message as the model will see it, with the omitted lines kept in its metadata. `by`: the session's
    name."""
    kept = {**message.response_metadata, _KEPT: {"by": by, "lines": lines_left_out(reply)}}
    content = with_content_text(message.content, reply.text)
    return message.model_copy(update={"content": content, "response_metadata": kept})


def with_lines_back(message: BaseMessage, unless_by: str = "") -> BaseMessage:
    """Return the message with its omitted lines restored, unless the session `unless_by` omitted them."""
    kept = message.response_metadata.get(_KEPT)
    if not isinstance(message, ToolMessage) or not isinstance(kept, Mapping) or kept.get("by") == unless_by:
        return message
    text = _text(message) or ""
    full = put_back(text, kept.get("lines", ()))
    return message if full == text else message.model_copy(update={"content": with_content_text(message.content, full)})


def as_chat(message: BaseMessage) -> dict[str, Any]:
    """Return the message in the shape of OpenAI's chats."""
    out = {"role": _ROLES.get(message.type, message.type), "content": message.content}
    if isinstance(message, ToolMessage):
        out["tool_call_id"] = message.tool_call_id
    elif isinstance(message, AIMessage):
        if not isinstance(message.content, str):  # some models put the calls here, too, as they were before editing
            out["content"] = [b for b in message.content if isinstance(b, str) or b.get("type") in _WORDS]
        calls = [(call["id"], {"name": call["name"], "arguments": call["args"]}) for call in message.tool_calls]
        out["tool_calls"] = [{"id": name, "type": "function", "function": called} for name, called in calls]
    return out


def _text(message: BaseMessage) -> str | None:
    """Return the text of a message that has exactly one, alone or among images. Otherwise return None."""
    if isinstance(message.content, str):
        return message.content
    texts = [block for block in message.content if isinstance(block, str) or block.get("type") == "text"]
    return None if len(texts) != 1 else texts[0] if isinstance(texts[0], str) else texts[0].get("text")
