"""Gemini CLI: the file of a chat, with its calls and the results that the model still sees, and the events that it
prints with `--output-format stream-json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from readcache.core.model.call import Frame
from readcache.transcripts.records import Content, Form, Recording, RequestSent, Turns
from readcache.transcripts.values import block_text, count_in, list_in, object_in

OUTPUT = "<untrusted_context>\nOutput: "  # before the output of a command
_SHELL = re.compile(
    rf"(?s)({OUTPUT})(.*?)"
    r"(\n(?:(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*\n)*</untrusted_context>)"
)
_WORKSPACE = re.compile(r"Workspace Directories:\*\*\n\s*- (/.*)")  # in the first message
_PART = re.compile(r"(?s)(.*Status: Showing lines (\d+)-\d+ of .*--- FILE CONTENT \(truncated\) ---\n)(.*)")


class Printed(NamedTuple):
    """The result of a command: `body` is its output, and `head` and `tail` are the host's text around it. `exit_code`
    is None if it is not known."""

    head: str
    body: str
    tail: str
    exit_code: int | None


def printed_by(shown: object) -> Printed | None:
    """Return a command's result. Return None if it shows no output, because the command still runs or was cancelled."""
    found = _SHELL.fullmatch(shown) if isinstance(shown, str) else None
    if found is None:
        return None
    head, body, tail = found.groups()
    status = re.findall(r"(?m)^Exit Code: (\d+)$", tail)
    code = int(status[-1]) if status else None if "\nSignal: " in tail or "\nError: " in tail else 0
    return Printed(f"{head.rstrip()}\n", body, tail, code)  # so that the output starts on a line of its own


def file_part(shown: str) -> tuple[str, int, str]:
    """Return the host's text before the lines of a read, the number of the first line (from 1), and the lines."""
    part = _PART.fullmatch(shown)
    return (part[1], int(part[2]), part[3]) if part else ("", 1, shown)


def is_gemini(row: Mapping[str, Any]) -> bool:
    """Return True for the first line of a chat, for a chat of earlier versions, which is a single document, and for an
    event of a stream."""
    return ("sessionId" in row and "projectHash" in row) or _is_event(row)


def _is_event(row: Mapping[str, Any]) -> bool:
    key = {"init": "session_id", "tool_use": "tool_id", "tool_result": "tool_id"}.get(str(row.get("type")))
    return key is not None and key in row


def load_gemini(content: Content) -> Iterator[Recording]:
    """Yield one recording. A sub-agent has a file of its own."""
    if any(_is_event(row) for _, row in content.sample):
        yield _streamed(content)
        return
    chat = _Chat()
    for _, row in content.objects():
        changed = object_in(row.get("$set")) or row
        messages = list(map(object_in, list_in(changed.get("messages"))))
        if messages:
            chat.begin_again(messages)
        for message in [row] if "id" in row else messages:
            chat.add(message)
    first = content.sample[0][1]
    name = str(first.get("sessionId"))
    yield chat.turns.recording(name, "gemini", reader="main" if first.get("kind", "main") == "main" else name)


FORM = Form("gemini", is_gemini, load_gemini, ("GEMINI_CLI_HOME", "~", ".gemini/tmp"))


def _streamed(content: Content) -> Recording:
    """Return the recording of a stream of events. The stream has the tokens of the whole session, not of each
    request."""
    turns, name = Turns(), ""
    for _, row in content.objects():
        kind, text = row.get("type"), str(row.get("content") or "")
        turns.at(row.get("timestamp"))
        if kind == "init":
            name = name or str(row.get("session_id"))
            turns.by(row.get("model"))
        elif kind == "message" and row.get("role") == "assistant":
            turns.answer(len(text))
        elif kind == "message":
            turns.type(len(text))
        elif kind == "tool_use":
            turns.tool(str(row.get("tool_id")), str(row.get("tool_name")), object_in(row.get("parameters")), "/")
        elif kind == "tool_result":
            failed = row.get("status") != "success"
            turns.result(str(row.get("tool_id")), str(row.get("output") or ""), failed=failed)
    return turns.recording(name or content.path, "gemini")


class _Chat:
    def __init__(self) -> None:
        self.turns = Turns()
        self._calls: set[str] = set()
        self._live: set[str] = set()  # calls whose results the model still sees
        self._kept: set[str] | None = None
        self._seen: set[str] = set()
        self._cwd = "/"

    def begin_again(self, messages: list[Mapping[str, Any]]) -> None:
        """Record that the host wrote the whole history again.

        It does so after a compression, if the user goes back, or if the chat is resumed. A resumed chat first writes an
        empty history.
        """
        self._kept = self._calls.intersection(_calls_in(messages))

    def add(self, message: Mapping[str, Any]) -> None:
        """Process a message. The host writes it a second time when its calls have ended."""
        name, parts = str(message.get("id")), message.get("content")
        is_new = name not in self._seen
        self._seen.add(name)
        self.turns.at(message.get("timestamp"))
        text = block_text([part for part in list_in(parts) if "text" in object_in(part)] or parts) or ""
        if message.get("type") == "gemini":
            if is_new:
                self._settle()
                self.turns.answer(len(text))
                self.turns.by(message.get("model"))
                self.turns.pay(_usage(object_in(message.get("tokens"))))
            self._take(list(map(object_in, list_in(message.get("toolCalls")))))
        elif is_new:
            self.turns.type(len(text))
            if found := _WORKSPACE.search(text):
                self._cwd = found[1]

    def _settle(self) -> None:
        if self._kept is not None and not self._live <= self._kept:
            self._live &= self._kept
            self.turns.trim(frozenset(self._live))
        self._kept = None

    def _take(self, asked: list[Mapping[str, Any]]) -> None:
        new = [call for call in asked if str(call.get("id")) not in self._calls]
        for known in (self._calls, self._live):
            known.update(str(call.get("id")) for call in new)
        for call in new:
            self.turns.tool(str(call.get("id")), str(call.get("name")), object_in(call.get("args")), self._cwd)
        for call in new:
            part = object_in(next(iter(list_in(call.get("result"))), None))
            response = object_in(object_in(part.get("functionResponse")).get("response"))
            self._deliver(call, str(response.get("output") or response.get("error") or ""))

    def _deliver(self, call: Mapping[str, Any], shown: str) -> None:
        name = str(call.get("id"))
        if (printed := printed_by(shown)) is not None:
            shown, frame = printed.head + printed.body + printed.tail, Frame(2, printed.tail.count("\n"))
            self.turns.result(name, shown, exit_code=printed.exit_code, frame=frame)
            return
        shown = file_part(shown)[2] if call.get("name") == "read_file" else shown
        self.turns.result(name, shown, failed=call.get("status") != "success")


def _calls_in(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the IDs of the calls whose results are in these messages."""
    for message in messages:
        parts = [object_in(object_in(part).get("functionResponse")) for part in list_in(message.get("content"))]
        yield from (str(part["id"]) for part in parts if "id" in part)
        yield from (str(object_in(call).get("id")) for call in list_in(message.get("toolCalls")))


def _usage(tokens: Mapping[str, Any]) -> RequestSent:
    """Return the billed tokens of a request."""
    # `input` includes the tokens that were read from a cache.
    read, output = count_in(tokens, "cached"), count_in(tokens, "output") + count_in(tokens, "thoughts")
    return RequestSent(max(0, count_in(tokens, "input") - read), cache_read=read, output=output)


def chat_messages(lines: Iterable[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the history that the host sends to the model, as OpenAI chat messages, and the ID of the last message."""
    history: dict[str, Any] = {}
    for line in lines:
        entry = json.loads(line)
        if "messages" in entry.get("$set", ()):
            history = {message["id"]: message for message in entry["$set"]["messages"]}
        elif "id" in entry:
            history[entry["id"]] = entry  # a second time when its calls have ended
    out: list[dict[str, Any]] = []
    for message in history.values():
        content = message.get("content", ())
        parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else list(content)
        # A resumed chat keeps its calls as parts, and may have lost `toolCalls`.
        made = message.get("toolCalls") or [part["functionCall"] for part in parts if "functionCall" in part]
        for call in made:
            function = {"name": call["name"], "arguments": json.dumps(call.get("args", {}))}
            out.append({"role": "assistant", "tool_calls": [{"id": call.get("id", ""), "function": function}]})
        out += [_as_chat(part) for part in parts if "functionCall" not in part]
    return out, next(reversed(history), "")


def _as_chat(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a message, a result or a text, as an OpenAI chat message."""
    answer = part.get("functionResponse")
    if answer is None:
        return {"role": "user", "content": part.get("text", "")}
    texts = [text for text in answer.get("response", {}).values() if isinstance(text, str)]
    # The output must start on a line of its own.
    shown = "\n".join(texts).replace(OUTPUT, OUTPUT.rstrip() + "\n", 1)
    return {"role": "tool", "tool_call_id": answer.get("id", ""), "content": shown}
