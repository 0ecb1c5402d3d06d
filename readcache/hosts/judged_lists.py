"""Message lists, judged before each request, for hosts that let an adapter change only the messages sent to the model.

The host keeps each result as its tool gave it. New results in the list are judged, and older markers are kept true.
Everything follows from the list. If it goes back, is forked, or is continued by another process, it is judged from its
beginning, and sent as before.
"""

from __future__ import annotations

import json
import os
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from readcache import Mode, Session
from readcache.context import mend_and_clear
from readcache.context.clearing import record_answer
from readcache.core.messages.blocks import Raw
from readcache.core.messages.editing import as_blocks, user_message, with_blocks, with_result_text
from readcache.core.messages.messages import Kind, Message, Part, normalise, parse_arguments
from readcache.core.messages.structure import answered, turn_starts
from readcache.core.model.text import digest
from readcache.core.model.tool_call import ToolCall
from readcache.hosts.adapter_settings import AdapterSettings, adapter_settings, fallback, model_name
from readcache.hosts.tool_results import Judge, answer_tool, tool_kinds
from readcache.process.mode import acts, mode_named


class ListChanges(NamedTuple):
    """Changes to a list. `texts`: new texts of results, by message and part index. `sections`: restored sections, by
    the index of the message that a compaction left."""

    texts: Mapping[tuple[int, int], str] = {}
    sections: Mapping[int, str] = {}


class ListPart(NamedTuple):
    """A part of a list. `at`: the index of its message. `nth`: its index in the message.

    `key`: names a call, or a result whose call is in the list; "" for any other part. `result`: the result as a call to
    judge, or None. `literal`: if the result is an object, the JSON literal of the text to judge; otherwise "".
    """

    at: int
    nth: int
    role: str
    part: Part
    key: str = ""
    result: ToolCall | None = None
    literal: str = ""

    def said(self) -> tuple[str, str]:
        """Return the role and the content of the part. It is the same value in each list that has the part."""
        return self.role, self.key or self.part.text

    @property
    def text(self) -> str:
        """The text of the part. If it is an object, only the text to judge."""
        return json.loads(self.literal) if self.literal else self.part.text

    def with_text(self, whole: str, text: str) -> str:
        """Return the host's result `whole` with another text instead of this part's text."""
        if not self.literal:
            return text
        return whole.replace(self.literal, json.dumps(text, ensure_ascii=False), 1)

    def as_chat(self, text: str) -> Raw:
        """Return the part as a message in OpenAI's shape. `text`: the text to use for a result."""
        if self.result is not None:
            return {"role": "tool", "tool_call_id": self.key, "content": text}
        if self.part.kind is Kind.CALL:
            given = self.part.text if self.part.arguments is None else self.part.arguments
            called = {"id": self.key, "type": "function", "function": {"name": self.part.name, "arguments": given}}
            return {"role": "assistant", "content": None, "tool_calls": [called]}
        return {"role": self.role, "content": self.part.text}


Details = Callable[[ToolCall, Message], ToolCall]


class JudgedLists:
    """The lists of an adapter. Raise UsageError for an invalid value.

    `host`: the adapter's name. `tools`: the kinds of tools, by name: "bash", "read", "write", "other", "ignore" or a
    function. Only needed for tools whose names and arguments do not show their kind. `given`: as for
    `adapter_settings`. `details`: adds to a result the facts that the host gives in its text or message.
    """

    def __init__(
        self,
        host: str,
        tools: Mapping[str, str | Judge] | None,
        given: Mapping[str, Any],
        details: Details = lambda result, _: result,
    ) -> None:
        self._host, self._settings, self._tools = host, adapter_settings(given), tool_kinds(tools)
        self._details = details
        self._sessions = self._settings.sessions(host)

    def stats(self) -> dict[str, int]:
        """Return the counters of `Session.stats`, summed over all lists."""
        return self._sessions.stats()

    def close(self) -> None:
        """End all conversations, and release the store."""
        self._sessions.close_all()

    def judged(self, messages: Sequence[Message], name: str, log: str = "", *, model: object = "") -> ListChanges:
        """Return the changes to make before the model is sent these messages. Each text in a result that is an
        object is judged for itself, and everything else in it stays as it is.

        `name`: names the conversation and the agent in it; "" if unknown. `log`: the session's ID, for other processes
        to find the restored sections; "" for none. `model`: the model that will be sent them, see `model_name`.
        """
        found = list(entries(messages, self._details, self._tools))
        if self._settings.policy.mode is Mode.OFF or not acts(mode_named(os.environ)):
            return ListChanges()
        with self._sessions.lock:
            lists = (each.notes for each in self._sessions.readers() if isinstance(each.notes, JudgedList))
            one = next((one for one in lists if one.goes_on_in(found, name)), None)
            if one is None and not any(entry.result or (log and _is_compaction(entry.part)) for entry in found):
                return ListChanges()
            key = one.key if one else os.urandom(8).hex()
            session = self._sessions.get(key, session_id=log or self._name_of(found), is_new=True)
            session.use_model(model_name(model))
            one = session.notes = one or JudgedList(session, key, name, self._settings)
            return one.judged(found, self._tools)

    def answered(self, name: str, answer: object) -> None:
        """Record the size of the conversation's last request, if the model's answer has it. `name`: as for `judged`.
        `answer`: as for `record_answer`."""
        if self._settings.policy.clear is None:
            return
        of_name = (each for each in self._sessions.readers() if getattr(each.notes, "name", None) == name)
        if (session := next(of_name, None)) is not None:
            fallback(lambda: record_answer(session, answer), None)

    def messages(self, messages: Sequence[Raw], name: str, *, model: object = "") -> list[Raw]:
        """Return the list as the model will be sent it, in the shape of any API. Unchanged messages are the same
        objects. `name`, `model`: as for `judged`."""
        normal, out = normalise(messages), list(messages)
        texts, sections = self.judged(normal, name, model=model)
        for (at, nth), text in texts.items():
            part = normal[at].parts[nth]
            out[at] = with_result_text(out[at], part.call_id, text, part.nth)
        for at, section in sections.items():
            user = next((user for user in range(at, len(out)) if normal[user].role == "user"), at)
            out[user] = with_blocks(out[user], [*as_blocks(out[user]), *as_blocks(user_message(section, normal).raw)])
        return out

    def _name_of(self, found: list[ListPart]) -> str:
        """Return a session ID that follows from the list, so that the tag of the markers does, too."""
        first = next((entry.key for entry in found if entry.result), "")
        return f"{self._host}-{digest(f'{found[0].said()} {first}')[:16]}"


class ListAdapter:
    """The common part of adapters that let `JudgedLists` judge the messages before each request. `host`: the adapter's
    name. `root`, `tools`, `settings`: as for the adapter."""

    host = ""

    def __init__(self, root: str = ".", *, tools: Mapping[str, str | Judge] | None = None, **settings: Any) -> None:
        super().__init__()
        self._lists = JudgedLists(self.host, tools, {"root": root, **settings})

    def stats(self) -> dict[str, int]:
        """Return the counters of `Session.stats`, summed over all conversations."""
        return self._lists.stats()

    def close(self) -> None:
        """End all conversations, and release the store."""
        self._lists.close()


class JudgedList:
    """One list that grows from request to request, and the texts shown for its results.

    `key`: its conversation in `Sessions`. `name`: the host's name for the conversation.
    """

    def __init__(self, session: Session, key: str, name: str, settings: AdapterSettings) -> None:
        self._session, self.key, self.name, self._settings = session, key, name, settings
        self._texts: dict[str, tuple[str, str]] = {}  # key -> (the tool's text, the text that the model is shown)
        self._entries: list[ListPart] = []  # the last list
        self._sections: dict[tuple[str, str], str] = {}  # role and content of what a compaction left -> section

    def goes_on_in(self, found: Sequence[ListPart], name: str) -> bool:
        """Return True if `found` continues this list. The conversation's name must be the same.

        The known results must be in the order in which they were judged, up to the last one, and all others must be
        newer. If no result is known, the conversation must have a name, the list must have a compaction, and the last
        list must have had every part before it.
        """
        order = {key: index for index, key in enumerate(self._texts)}
        indexes = [order.get(entry.key, len(order)) for entry in found if entry.result]
        if name != self.name or min(indexes, default=len(order)) < len(order):
            return name == self.name and len(order) - 1 in indexes and indexes == sorted(indexes)
        compaction = next((at for at, entry in enumerate(found) if _is_compaction(entry.part)), None)
        had = {entry.said() for entry in self._entries}
        return name != "" and compaction is not None and {entry.said() for entry in found[:compaction]} <= had

    def judged(self, found: list[ListPart], tools: Mapping[str, str | Judge]) -> ListChanges:
        """Return the changes to make in this list."""
        for at in self._compactions(found):
            before, left = found[:at], found[at]
            if any(entry.key not in self._texts for entry in before if entry.result):
                self._shown(before, tools)  # judge the list from its beginning
            keep = [entry.key for entry in found[at:] if entry.result]
            sent = [entry.as_chat("") for entry in self._entries or before]
            section = self._session.restored_section(f"{left.said()}", keep=keep, messages=sent)
            self._sections[left.said()] = section
        self._entries = found
        changes = self._shown(found, tools)
        for call_id in list(self._session.view.waiting):  # the list with these replies is sent now
            self._session.commit(call_id)
        return changes

    def _compactions(self, found: Sequence[ListPart]) -> list[int]:
        """Return the indexes of new parts that a compaction left: compactions by the server, or a text that replaced
        results."""
        compactions = (at for at, entry in enumerate(found) if _is_compaction(entry.part))
        new = [at for at in compactions if found[at].said() not in self._sections]
        old = [entry.said() for entry in self._entries]
        if new or {entry.key for entry in self._entries} <= {entry.key for entry in found}:
            return new
        pairs = enumerate(zip(found, old, strict=False))
        at = next((at for at, (entry, said) in pairs if entry.said() != said), len(found))
        is_new = at < len(found) and not found[at].key and found[at].said() not in {*old, *self._sections}
        return [at] if is_new else []

    def _shown(self, found: list[ListPart], tools: Mapping[str, str | Judge]) -> ListChanges:
        chat, parts, sections = self._as_chat(found)
        for part, repaired in zip(parts, self._session.mend(chat), strict=True):
            if part is None or part.result is None:
                continue
            if part.key in self._texts:
                self._texts[part.key] = part.result.output, repaired["content"]
            else:
                reply = self._settings.told(answer_tool(self._session, part.result, tools.get(part.result.name)))
                output = part.result.output
                self._texts[part.key] = output, output if reply is None else reply.text
                time.sleep(0)  # let the event loop's thread run
        if self._session.policy.clear is not None:
            chat, parts, _ = self._as_chat(found)
            for part, kept in zip(parts, mend_and_clear(chat, self._session), strict=True):
                if part is not None and part.result is not None:
                    self._texts[part.key] = part.result.output, kept["content"]
        texts = dict[tuple[int, int], str]()
        for part in parts:
            if part is not None and part.result is not None:
                where, shown = (part.at, part.nth), self._texts[part.key][1]
                if shown != part.result.output:
                    texts[where] = part.with_text(texts.get(where, part.part.text), shown)
        return ListChanges(texts, sections)

    def _as_chat(self, found: list[ListPart]) -> tuple[list[Raw], list[ListPart | None], dict[int, str]]:
        """Return (messages, parts, sections): the list as the model sees it, in OpenAI's shape.

        `parts`: the part of each message, or None for a section. `sections`: the sections in the list, by the index of
        the message after which they appear.
        """
        compactions = (at for at, entry in enumerate(found) if _is_compaction(entry.part))
        first = max(compactions, default=0)
        chat, parts, sections = list[Raw](), list[ListPart | None](), dict[int, str]()
        for entry in found[first:]:
            given, shown = self._texts.get(entry.key, ("", ""))
            # A new result has no text yet: it may become a marker, so no older marker may name it as its source.
            text = shown if entry.result and given == entry.result.output else entry.text
            message, last = entry.as_chat(text if entry.key in self._texts else ""), parts[-1] if parts else None
            if entry.part.kind is Kind.CALL and last and last.part.kind is Kind.CALL and last.at == entry.at:
                chat[-1] = {**chat[-1], "tool_calls": [*chat[-1]["tool_calls"], *message["tool_calls"]]}
                continue
            chat.append(message)
            parts.append(entry)
            if section := self._sections.get(entry.said()):
                sections[entry.at] = section
                chat.append({"role": "user", "content": section})
                parts.append(None)
        return chat, parts, sections


def _is_compaction(part: Part) -> bool:
    """Return True for a compaction by the server, which drops all parts before it."""
    return part.kind is Kind.OTHER and part.name.startswith("compaction")


def entries(messages: Sequence[Message], details: Details, tools: Mapping[str, str | Judge]) -> Iterator[ListPart]:
    """Yield the parts of a list that have content.

    A call without an ID, or with an ID that occurred before, gets a unique key. Calls of one response get the same
    batch, because the model made them in parallel. If a result is an object, it yields a part for each text in it, and
    its call yields as many.
    """
    seen, keys, batches = Counter[str](), dict[int, tuple[str, str, Part, Part]](), dict[int, str]()
    starts = turn_starts(messages)
    for call_at, call, _, result in answered(messages):
        name = call.call_id or digest(f"{call.name} {call.text} {result.text}")[:16]
        seen[name] += 1
        key = f"{name}#{seen[name]}" if seen[name] > 1 else name
        batch = f"at once with {batches.setdefault(bisect(starts, call_at), key)}"
        keys[id(call)] = keys[id(result)] = key, batch, call, result
    for at, message in enumerate(messages):
        for nth, part in enumerate(message.parts):
            if id(part) not in keys:
                if part.kind is Kind.TEXT or _is_compaction(part):
                    yield ListPart(at, nth, message.role, part)
                continue
            key, batch, call, result = keys[id(part)]
            is_whole = not result.is_object or callable(kind := tools.get(call.name)) or kind == "ignore"
            told = ToolCall(key, call.name, call.arguments or {}, result.text, batch, is_error=result.is_error)
            told = details(told, message)
            for literal, one in [("", told)] if is_whole else _split(told):
                if part is result:
                    yield ListPart(at, nth, "tool", part, one.call_id, one, literal)
                else:
                    yield ListPart(at, nth, message.role, part, one.call_id)


# Names under which a tool returns the output of a command or the content of a file.
OUTPUTS = ("stdout", "output", "result", "content", "contents", "text")
MOST_TEXTS = 8  # in one result; a result with more is judged as one text


def _split(call: ToolCall) -> list[tuple[str, ToolCall]]:
    """Return (literal, call) for each text of several lines in a result that is an object: the text's JSON literal, and
    the call with this text as its result. Return the call itself, with the literal "", if there are none or too many.

    The first text with a name in `OUTPUTS` is the call's output. Any other text, such as stderr, is the output of
    another tool.
    """
    given = parse_arguments(call.output)
    out: dict[str, ToolCall] = {}
    has_output = False
    for path, text in _long_texts(given):
        literal = json.dumps(text, ensure_ascii=False)
        if call.output.count(literal) != 1:
            return [("", call)]
        if not has_output and path[-1] in OUTPUTS:
            out[literal], has_output = replace(call, output=text), True
        else:
            name, said = ".".join(path), json.dumps(call.arguments, ensure_ascii=False, default=str)
            other = ToolCall(f"{call.call_id}.{name}", f"{call.name} {name}", said, text, call.batch)
            out[literal] = other
    return list(out.items()) if 0 < len(out) <= MOST_TEXTS else [("", call)]


def _long_texts(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (path, text) for each text of several lines inside a value. The path has the keys and indexes to it."""
    if isinstance(value, str):
        if "\n" in value.strip():
            yield path, value
    elif isinstance(value, (Mapping, list)):
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, each in inner:
            yield from _long_texts(each, (*path, str(key)))
