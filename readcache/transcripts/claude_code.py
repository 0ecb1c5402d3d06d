"""Claude Code: `~/.claude/projects/*/*.jsonl`, and `subagents/agent-*.jsonl` beside them.

Entries form a tree by `uuid` and `parentUuid`. What the model was sent with a request is what stands above the answer
in it: up to a compaction, to the point that the user went back to, or to the beginning. An answer is several entries
with one message id; the results of calls that it made at once hang on different ones of them. `api-request` lines list
the messages of each request by hash, as a change of the request before: the first `keep` messages of `base`, and a
`tail`. A result that was cleared or cut since has another hash.

`load_claude_code` makes recordings of a whole file. They are replayed within the limits of readcache's adapter: it may
omit all, the beginning or the end of a read, and nothing of a failed command. `Transcript` proves to that adapter,
within milliseconds, what the model was sent with one request. A damaged line proves nothing.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from readcache.core.messages.tools import LINE_NUMBER
from readcache.core.model.frame import Frame
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall, Written
from readcache.transcripts.records import Content, HistoryRemoval, Item, Recording, RequestSent
from readcache.transcripts.tools import replaced_lines
from readcache.transcripts.values import block_text, dict_in, epoch_of, int_in, list_in, said_in

Entry = Mapping[str, Any]
WRITERS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
# In the response of a command: the model was shown something other than its stdout.
NOT_SHOWN = ("interrupted", "isImage", "persistedOutputPath", "rawOutputPath", "backgroundTaskId")
MOST = 500_000_000  # bytes of a transcript that are read
_KINDS = ("user", "assistant", "attachment", "system", "progress")
STATUS = re.compile(r"Exit code (\d+)\n")
MOVED_BACK = "Shell cwd was reset to "  # Claude Code's own last line
_NUMBER = re.compile(rf"{LINE_NUMBER}|^ *\d{{1,9}}-")  # the latter: context lines of `grep -n`
_REMOVALS = (b'"tool_results_cut"', b'"microcompact_boundary"')  # records of what was taken out since
_SYNTHETIC = "<synthetic>"  # the model of what Claude Code says itself


def is_claude_code(entry: Entry) -> bool:
    """True for an entry of a conversation."""
    return entry.get("type") in _KINDS and "uuid" in entry and "parentUuid" in entry


def load_claude_code(content: Content) -> Iterator[Recording]:
    """One recording for each reader: the agent, and sub-agents in the same file."""
    readers: dict[str, _Reader] = {}
    roots: dict[str, str] = {}  # uuid of an entry of a side chain -> its reader
    began: float | None = None
    name = ""
    for line, entry in content.objects():
        if entry.get("type") not in _KINDS:
            continue
        name = name or str(entry.get("sessionId") or "")
        began = began if began is not None else epoch_of(entry.get("timestamp"))
        inner = dict_in(entry.get("data"))
        if entry["type"] == "progress" and inner.get("type") == "agent_progress":
            reader, entry = str(inner.get("agentId")), dict(dict_in(inner.get("message")))
        elif entry.get("agentId") or entry.get("isSidechain"):
            above = roots.get(str(entry.get("parentUuid")))
            reader = str(entry.get("agentId") or above or entry.get("uuid"))
            roots[str(entry.get("uuid"))] = reader
        else:
            reader = "main"
        try:
            readers.setdefault(reader, _Reader()).take(entry)
        except (AttributeError, KeyError, TypeError, ValueError):
            content.damage.add(content.path, line)
    for reader, found in readers.items():
        if found.items:  # requests that no usage was told of say nothing
            items = tuple(item for item in found.items if not isinstance(item, RequestSent) or item.prompt)
            known = found.first_call, found.model
            yield Recording(name or content.path, "claude-code", items, reader, "claude-code", began, *known)


class _Node(NamedTuple):
    """Where an entry stands."""

    answer: str | None  # the newest one above it, or the one that it is of; "" above all; None: the file does not tell
    chars: int = 0  # that the user typed since
    files: tuple[ToolCall, ...] = ()  # that Claude Code showed by itself since
    compacts: bool = False  # has it made room since?
    kept: tuple[str, ...] = ()  # uuids that a compaction kept


class _Reader:
    """One reader's entries, in the order of the file."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.first_call = self.model = ""
        self._nodes: dict[str, _Node] = {}
        self._live: dict[str, None] = {}  # ids of the answers above the newest one, in order
        self._before: dict[str, str] = {}  # id of an answer -> that of the one above it
        self._asked: dict[str, tuple[Entry, Entry]] = {}  # call id -> its block, the entry
        self._answer_of: dict[str, str] = {}  # id of a call or a shown file -> id of its answer
        self._requests: dict[str, int] = {}  # id of an answer -> place of its request

    def take(self, entry: Entry) -> None:
        """The next entry."""
        message, parent = dict_in(entry.get("message")), entry.get("parentUuid", "")
        above = _Node("") if parent is None else self._nodes.get(parent, _Node(None))
        node = _node_below(above, entry, message)
        if entry.get("type") == "assistant" and message.get("model") != _SYNTHETIC:
            answer = _answer_of(entry)
            node = _Node(answer)
            self.model = self.model or str(message.get("model") or "")
            if answer not in self._live:
                self._begin(answer, above)
            self._bill(answer, message)
            for block in list_in(message.get("content")):
                if block.get("type") == "tool_use":
                    self._asked[str(block["id"])] = block, entry
                    self._answer_of[str(block["id"])] = answer
                    self.first_call = self.first_call or str(block["id"])
        elif entry.get("type") == "user":
            for block in list_in(message.get("content")):
                name = str(block.get("tool_use_id")) if isinstance(block, dict) else ""
                if name in self._asked and block.get("type") == "tool_result":
                    made = _call(name, *self._asked.pop(name), block, dict_in(entry.get("toolUseResult")))
                    at = epoch_of(entry.get("timestamp"))
                    self.items.append(replace(made, batch=self._answer_of.get(name, ""), at=at))
        self._nodes[str(entry.get("uuid"))] = node

    def _begin(self, answer: str, above: _Node) -> None:
        """A new answer: what stands above it was sent."""
        before = len(self._answer_of)
        if above.answer is not None:  # what is damaged is the file, not the conversation
            self._go_back(above.answer, above.kept)
            self._before.setdefault(answer, above.answer)
        if len(self._answer_of) < before or above.files:
            self.items.append(HistoryRemoval(frozenset(self._answer_of), above.files, above.compacts))
            self._answer_of.update((file.call_id, answer) for file in above.files)
        self._live[answer] = None
        self._requests[answer] = len(self.items)
        self.items.append(RequestSent(added=above.chars))

    def _go_back(self, answer: str, kept: Collection[str]) -> None:
        """The answers after this one are not above any more; "": none is, but those that a compaction kept."""
        while answer and answer not in self._live:  # it was gone back on itself
            answer = self._before.get(answer, "")
        if answer == next(reversed(self._live), ""):
            return
        order = list(self._live)
        kept_answers = {self._nodes[uuid].answer for uuid in kept if uuid in self._nodes}
        keep = set(order[: order.index(answer) + 1]) if answer else kept_answers
        self._live = {name: None for name in order if name in keep}
        self._answer_of = {name: of for name, of in self._answer_of.items() if of in self._live}

    def _bill(self, answer: str, message: Entry) -> None:
        """Later entries of an answer have the final numbers."""
        usage, index = dict_in(message.get("usage")), self._requests[answer]
        before = self.items[index]
        assert isinstance(before, RequestSent)
        created = dict_in(usage.get("cache_creation"))
        hour = int_in(created.get("ephemeral_1h_input_tokens")) or 0
        self.items[index] = RequestSent(
            fresh=int_in(usage.get("input_tokens")) or 0,
            cache_write=(int_in(usage.get("cache_creation_input_tokens")) or 0) - hour,
            cache_write_hour=hour,
            cache_read=int_in(usage.get("cache_read_input_tokens")) or 0,
            output=int_in(usage.get("output_tokens")) or 0,
            added=before.added,
            answer=before.answer + sum(map(_chars_of, list_in(message.get("content")))),
        )


def _node_below(above: _Node, entry: Entry, message: Entry) -> _Node:
    kind = entry.get("type")
    if kind == "system" and str(entry.get("subtype")).endswith("compact_boundary"):
        preserved = dict_in(dict_in(entry.get("compactMetadata")).get("preservedMessages"))
        return _Node("", compacts=True, kept=tuple(map(str, list_in(preserved.get("uuids")))))
    if kind == "attachment":
        file, chars = _shown_file(entry), len(json.dumps(entry.get("attachment")))
        return above._replace(chars=above.chars + chars, files=(*above.files, *([file] if file else [])))
    typed = block_text(message.get("content")) if kind == "user" else None
    compacts = above.compacts or bool(entry.get("isCompactSummary"))
    return above._replace(chars=above.chars + len(typed or ""), compacts=compacts)


def _chars_of(block: Entry) -> int:
    """Characters of a part of an answer."""
    given = dict_in(block.get("input"))
    return len(str(block.get("text") or block.get("thinking") or "")) + (len(json.dumps(given)) if given else 0)


def _shown_file(entry: Entry) -> ToolCall | None:
    """A file that Claude Code put before the model by itself: named by the user, or restored after a compaction."""
    file = _attached_file(entry)
    content, path = file.get("content"), file.get("filePath")
    if not isinstance(content, str) or not isinstance(path, str):
        return None
    asked = AskedRead(path, int_in(file.get("startLine")) or 1, numbered=False)
    return ToolCall(str(entry.get("uuid")), "Read", None, content, asked=asked, tool="attachment")


def _call(name: str, asked: Entry, entry: Entry, block: Entry, response: Entry) -> ToolCall:
    tool, given = str(asked.get("name")), dict_in(asked.get("input"))
    text, failed = block_text(block.get("content")), bool(block.get("is_error"))
    output = text or ""
    call = ToolCall(name, tool, given, output, is_error=failed, said=said_in(given), tool=tool.lower())
    if tool == "Bash" and isinstance(given.get("command"), str):
        hidden = any(response.get(key) for key in NOT_SHOWN) or output.startswith("<")
        status = STATUS.match(output) if failed else None
        tail = 1 if output.rpartition("\n")[2].startswith(MOVED_BACK) else 0
        code = int(status[1]) if status else None if failed else 0
        frame = Frame(1 if status else 0, tail) if status or tail else None
        call = replace(call, asked=AskedCommand(given["command"]), cwd=str(entry.get("cwd") or "/"), frame=frame)
        return replace(call, exit_code=code, complete=not hidden and not failed)
    path = given.get("file_path") or given.get("notebook_path")
    if tool in WRITERS and isinstance(path, str):
        content = given.get("content") if tool == "Write" else None
        writes = () if failed else (Written(path, content if isinstance(content, str) else None),)
        return replace(call, is_judged=False, writes=writes, replaced=replaced_lines(given))
    if text is None or failed:
        return replace(call, is_judged=False)
    if tool == "Read" and isinstance(path, str):
        start, limit = max(1, int_in(given.get("offset")) or 1), int_in(given.get("limit"))
        read = AskedRead(path, start, start + limit - 1 if limit else None, edges_only=True)
        return replace(call, asked=read)
    return replace(call, tool=tool) if "__" in tool else call


class Transcript:
    """The newest part of a transcript."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def call(self, call_id: str) -> Entry:
        """The answer in which the model made this call; empty when it is not there."""
        return self._find(f'"id":{json.dumps(call_id)}', lambda entry: call_id in _blocks_by(entry, "id"))[0]

    def result_of(self, call_id: str) -> str | None:
        """The text that the model was sent as the result of this call; None if that is not here yet."""
        result, at = self._result(call_id)
        block = _blocks_by(result, "tool_use_id").get(call_id)
        return None if at < 0 or block is None else "\n".join(_texts_in(block.get("content")))

    def lines_of(self, source: str, call_id: str, section: str | None = None) -> set[str]:
        """The lines, without numbers, of the call `source` and its result, or of the restored file of that name, as
        sent in the request that led to the call `call_id`. `section`: of this text, which a hook put back after a
        compaction, instead. Empty where that is not proven."""
        asked, there = self.call(call_id), self.call(source)
        result, at = self._result(source)
        if section is not None:
            there, at = self._find('"type":"hook_additional_context"', lambda entry: section in _added(entry))
        elif not there:
            there, at = self._entry(source)
        if at < 0 or not asked or _answer_of(asked) == _answer_of(there):
            return set()  # not known, or made at once
        first = self._first_sent(at, asked) if _answer_of(there) in map(_answer_of, self._above(asked)) else ()
        for name in first:  # a message that was not sent as it stands here stands in a line of its own
            blob, _ = self._find(f'"hash":"{name}"', lambda entry: source in _blocks_by(entry, "tool_use_id"))
            result = blob or result
        blocks = _blocks_by(there, "id").get(source), _blocks_by(result, "tool_use_id").get(source)
        return _lines_in([*blocks, there.get("rendered")]) if first else set()

    def source(self, conversation: str) -> str | None:
        """The conversation that this one was forked from, in which its older answers were requested; None: none is
        known."""
        at = self._data.rfind(b'"requestSessionId":"')
        entry = _read_entry(self._line(self._data.rfind(b"\n", 0, at) + 1)) if at >= 0 else {}
        name = entry.get("requestSessionId")
        return name if isinstance(name, str) and name != conversation else None

    def may_have_removed(self, since: float) -> bool:
        """True if results may have been taken out of the conversation, or the server may do so with the newest request;
        also if no request is known that was sent at `since` (seconds since the epoch) or later."""
        if any(record in self._data for record in _REMOVALS):
            return True
        return not self._newest_request or self.lacks_request(since) or _may_clear(self._newest_request)

    def lacks_request(self, since: float) -> bool:
        """Return True if requests are listed, but none that was sent at `since` (seconds since the epoch) or later."""
        return bool(self._newest_request) and (epoch_of(self._newest_request.get("timestamp")) or 0.0) < since

    @functools.cached_property
    def _newest_request(self) -> Entry:
        at = self._data.rfind(b'\n{"type":"api-request",')
        return _read_entry(self._line(at + 1)) if at >= 0 else {}

    def restored_files(self) -> Iterator[tuple[str, Entry]]:
        """(id, file) for each file that Claude Code itself showed again after the newest compaction."""
        at = self._data.rfind(b'"subtype":"compact_boundary"')
        for line in self._data[at:].split(b"\n") if at >= 0 else ():
            entry = _read_entry(line) if b'"type":"file"' in line else {}
            file = _attached_file(entry)
            if file and "rendered" in entry:
                yield str(entry.get("uuid")), file

    def _above(self, entry: Entry) -> Iterator[Entry]:
        """The entries above that one, up to where older results were cleared."""
        at = None
        while entry.get("parentUuid") and entry.get("subtype") != "microcompact_boundary":
            entry, at = self._entry(entry["parentUuid"], at)
            yield entry

    def _first_sent(self, at: int, asked: Entry) -> Collection[str]:
        """The hashes of what was new in the first request after `at`; none, unless the one behind `asked` held it."""
        first: Entry = {}
        while not first.get("tail") and at >= 0:  # a request that was made again has none
            at = self._data.find(b'\n{"type":"api-request",', at + 1)
            first = _read_entry(self._line(at + 1)) if at >= 0 else {}
        new, sent, left, before = set(first.get("tail", ())), set[str](), MOST, None
        name = asked.get("requestRef")
        while new - sent and name:
            request, before = self._find(f'"id":"{name}"', lambda entry: entry.get("type") == "api-request", before)
            if left == MOST and _may_clear(request):
                return ()
            sent.update(request.get("tail", ())[: max(0, left - request.get("keep", 0))])
            left, name = min(left, request.get("keep", 0)), request.get("base")
        return () if new - sent else new

    def _result(self, call_id: str) -> tuple[Entry, int]:
        return self._find(
            f'"tool_use_id":{json.dumps(call_id)}',
            lambda entry: entry.get("type") == "user" and call_id in _blocks_by(entry, "tool_use_id"),
        )

    def _entry(self, uuid: str, before: int | None = None) -> tuple[Entry, int]:
        return self._find(f'"uuid":{json.dumps(uuid)}', lambda entry: entry.get("uuid") == uuid, before)

    def _find(self, needle: str, fits: Callable[[Entry], bool], before: int | None = None) -> tuple[Entry, int]:
        """The last entry with the needle in it that fits, and where it begins; ({}, -1) when there is none."""
        raw, at = needle.encode(), len(self._data) if before is None else before
        while (at := self._data.rfind(raw, 0, at)) >= 0:
            at = self._data.rfind(b"\n", 0, at) + 1
            if (entry := _read_entry(self._line(at))) and fits(entry):
                return entry, at
        return {}, -1

    def _line(self, at: int) -> bytes:
        return self._data[at : self._data.find(b"\n", at)]  # skip the last line if it is half written


def _read_entry(line: bytes) -> Entry:
    """What a line says; empty where it is damaged."""
    try:
        return dict_in(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _blocks_by(entry: Entry, key: str) -> Mapping[Any, Entry]:
    """The blocks of an entry's message by their id."""
    content = dict_in(entry.get("message")).get("content")
    blocks = map(dict_in, list_in(content))
    return {block[key]: block for block in blocks if isinstance(block.get(key), str)}


def _answer_of(entry: Entry) -> str:
    """What the entries of one answer share."""
    return str(dict_in(entry.get("message")).get("id") or entry.get("uuid"))


def _attached_file(entry: Entry) -> Entry:
    """The file that Claude Code showed by itself; empty where the entry has none."""
    return dict_in(dict_in(dict_in(entry.get("attachment")).get("content")).get("file"))


def _added(entry: Entry) -> list[Any]:
    """The texts that hooks added."""
    return list_in(dict_in(entry.get("attachment")).get("content"))


def _may_clear(request: Entry) -> bool:
    """True if the server was asked to edit more than thinking."""
    edits = dict_in(dict_in(request.get("params")).get("context_management")).get("edits") or ()
    return any(not str(dict_in(edit).get("type")).startswith("clear_thinking") for edit in edits)


def _lines_in(value: object) -> set[str]:
    """The lines of all strings inside a value, without the numbers in front of them."""
    if isinstance(value, str):
        return set(map(bare, value.split("\n")))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(_lines_in, inner))


def _texts_in(content: object) -> list[str]:
    """Return the texts of a result's content: a string, or blocks."""
    blocks = [{"text": content}] if isinstance(content, str) else map(dict_in, list_in(content))
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]


def bare(line: str) -> str:
    """The line without the number in front of it."""
    return _NUMBER.sub("", line, count=1)
