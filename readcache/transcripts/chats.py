"""Message lists of agent loops: OpenAI's chat and Responses APIs, and Anthropic's API.

The trajectories of mini-swe-agent are such lists, too. Its first version has the command in a block of text, and the
output in the next user message.

A document is a list, or has a list in `messages`. In other files, each line has a conversation or one message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from readcache.core.messages.blocks import CALLS, IMAGES, ITEM_RESULTS, THINKING, Raw, result_keys
from readcache.core.messages.messages import Kind, Message, last_compaction, normalise_one
from readcache.core.model.call import Frame
from readcache.transcripts.records import Content, Form, Recording, RequestSent, Turns
from readcache.transcripts.values import count_in, int_in, list_in, object_in

_ITEMS = (*CALLS, *ITEM_RESULTS, "message", "reasoning")  # of the Responses API
_BLOCK = re.compile(r"^```(?:bash|sh|shell|mswea_bash_command)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# mini-swe-agent's frame around an output that it did not truncate.
_HEAD = re.compile(r"\A<returncode>(-?\d+)</returncode>\n<output>\n")
_TAIL = "</output>"
_TRUNCATED = ("<output_head>", "<elided_chars>")
DIRECTORY = "/testbed"  # for commands that name no directory; SWE-bench keeps the repository there


def is_message(row: Mapping[str, Any]) -> bool:
    """Return True for a message, or an item of the Responses API."""
    if last_compaction(row) is not None or (
        isinstance(row.get("role"), str) and ("content" in row or "tool_calls" in row)
    ):
        return True
    return row.get("type") in _ITEMS and ("call_id" in row or "role" in row)


def messages_in(row: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a conversation, or an empty list if the object is not a conversation."""
    found = list_in(row.get("messages")) or list_in(row.get("input"))
    return found if found and all(is_message(object_in(message)) for message in found[:5]) else []


def is_chat(row: Mapping[str, Any]) -> bool:
    """Return True for a conversation or a message."""
    return bool(messages_in(row)) or is_message(row)


def load_chats(content: Content) -> Iterator[Recording]:
    """Yield a recording of each conversation. The format of mini-swe-agent's recordings is "mini-swe-agent"."""
    loose: list[Any] = []
    for line, row in content.objects():
        if found := messages_in(row):
            yield _recording(content.location(line), row, found)
        elif is_message(row):
            loose.append(row)
        else:
            content.damage.add(content.path, line)
    if loose:
        yield _recording(content.path, {}, loose)


FORM = Form("messages", is_chat, load_chats)


def _recording(location: str, row: Mapping[str, Any], messages: list[Any]) -> Recording:
    chat = _Chat()
    chat.turns.by(row.get("model"))
    for message in messages:
        chat.take(object_in(message))
    is_mini = str(row.get("trajectory_format")).startswith("mini-swe-agent") or chat.is_text
    name = str(row.get("instance_id") or row.get("id") or location)
    form = "mini-swe-agent" if is_mini else "messages"
    found = chat.turns.recording(name, form)
    return replace(found, first_call="") if chat.is_text else found


class _Chat:
    def __init__(self) -> None:
        self.turns = Turns()
        self.is_text = False  # True if the commands are in blocks of text
        self._number = 0

    def take(self, raw: Raw) -> None:
        """Process the next message."""
        message, extra = normalise_one(_with_plain_results(raw)), object_in(raw.get("extra"))
        results = [part for part in message.parts if part.kind is Kind.RESULT]
        self.turns.at(extra.get("timestamp"))
        if last_compaction(raw) is not None:
            self.turns.trim()
        if message.role == "assistant":
            self._answer(message)
            response = object_in(extra.get("response"))
            self.turns.by(raw.get("model") or response.get("model"))
            usage = object_in(raw.get("usage")) or object_in(response.get("usage"))
            if usage:
                self.turns.pay(usage_of(usage))
        elif message.role == "user" and self.is_text and self.turns.waiting and not results:
            self._result(self.turns.waiting[0], message.text)
        else:
            mixed = {part.call_id for part in message.parts if part.kind in (Kind.IMAGE, Kind.OTHER)}
            for part in results:
                failed = part.is_error or bool(extra.get("is_error"))
                self._result(str(part.call_id), "" if part.call_id in mixed else part.text, failed=failed)
            if message.text or not results:
                self.turns.type(len(message.text))

    def _answer(self, message: Message) -> None:
        self.turns.answer(len(message.text))
        calls = [part for part in message.parts if part.kind is Kind.CALL]
        for part in calls:
            given = part.arguments if part.arguments is not None else {"input": part.text} if part.text else {}
            self.turns.tool(str(part.call_id), part.name, given, DIRECTORY)
        found = _BLOCK.findall(message.text) if not calls and not self.turns.waiting else []
        if len(found) == 1:
            self._number += 1
            self.is_text = True
            self.turns.tool(f"c{self._number}", "bash", {"command": found[0].strip("\n")}, DIRECTORY)

    def _result(self, call_id: str, output: str, *, failed: bool = False) -> None:
        inner, whole, frame = object_in(output), True, None
        status: int | None = 0
        if isinstance(inner.get("output"), str) and "returncode" in inner:  # JSON; only its text has lines
            output, status = inner["output"], int_in(inner["returncode"])
        elif head := _HEAD.match(output):
            status, frame = int(head[1]), Frame(2, 1 if output.rstrip().endswith(_TAIL) else 0)
        elif any(mark in output for mark in _TRUNCATED):
            whole = False
        self.turns.result(call_id, output, failed=failed, exit_code=status, complete=whole, frame=frame)


def _with_plain_results(raw: Raw) -> Raw:
    """Return a message whose results have texts of type "text". A part of any other type also becomes a text, if it has
    one and is not an image."""
    keys = result_keys(raw)
    parts = raw.get(keys[1] if keys else "content")
    if not isinstance(parts, list):
        return raw
    if keys:
        return {**raw, keys[1]: [_as_text(part) for part in parts]}
    return {**raw, "content": [_with_plain_results(part) if result_keys(object_in(part)) else part for part in parts]}


def _as_text(part: Any) -> Any:
    """Return a part of a result as a text, if it has one."""
    raw = object_in(part)
    is_other = raw.get("type") in (*IMAGES, *THINKING) or not isinstance(raw.get("text"), str)
    return part if is_other else {**raw, "type": "text"}


def usage_of(usage: Mapping[str, Any]) -> RequestSent:
    """Return the billed tokens in the usage fields of any provider. OpenAI's prompt tokens include cached tokens."""

    cached = (
        count_in(usage, "cache_read_input_tokens")
        or count_in(usage, "prompt_tokens_details", "cached_tokens")
        or count_in(usage, "input_tokens_details", "cached_tokens")
        or count_in(usage, "prompt_cache_hit_tokens")
    )
    written = count_in(usage, "cache_creation_input_tokens")
    fresh = count_in(usage, "prompt_tokens") or count_in(usage, "input_tokens")
    if "prompt_tokens" in usage or "input_tokens_details" in usage:
        fresh -= cached + written
    output = count_in(usage, "completion_tokens") or count_in(usage, "output_tokens")
    return RequestSent(fresh, written, cache_read=cached, output=output)
