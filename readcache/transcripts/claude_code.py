"""Claude Code: `~/.claude/projects/*/*.jsonl`, and `subagents/agent-*.jsonl` beside them.

Entries form a tree by `uuid` and `parentUuid`. A request to the model contained the entries above its answer: back to a
compaction, to the point that the user went back to, or to the beginning. An answer is several entries with one message
ID. The results of its parallel calls are below different ones of these entries. `api-request` lines list the messages
of each request by hash, as a change of an earlier request: the first `keep` messages of `base`, and a `tail`. A result
that was cleared or truncated later gets another hash.

`load_claude_code` makes recordings of a whole file. They are replayed within the limits of readcache's adapter: it may
omit all, the beginning or the end of a read, and nothing of a failed command. `Transcript` proves to that adapter,
within milliseconds, the content of one request. A damaged line proves nothing.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from readcache.core.model.call import Frame
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall, Written
from readcache.transcripts.records import Content, Form, HistoryRemoval, Item, Recording, RequestSent
from readcache.transcripts.tools import bare, replaced_lines
from readcache.transcripts.values import block_text, count_in, dict_in, epoch_of, int_in, list_in, said_in

Entry = Mapping[str, Any]
WRITERS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
# Keys in the response of a command: any of them means that the model saw something other than its stdout.
NOT_SHOWN = ("interrupted", "isImage", "persistedOutputPath", "rawOutputPath", "backgroundTaskId")
MOST = 500_000_000  # maximum size of a transcript that is read, in bytes
_KINDS = ("user", "assistant", "attachment", "system", "progress")
STATUS = re.compile(r"Exit code (\d+)\n")
MOVED_BACK = "Shell cwd was reset to "  # Claude Code's own last line
_REMOVALS = (b'"tool_results_cut"', b'"microcompact_boundary"')  # records of later removals
_SYNTHETIC = "<synthetic>"  # the model of messages that Claude Code writes itself


def is_claude_code(entry: Entry) -> bool:
    """Return True for an entry of a conversation."""
    return entry.get("type") in _KINDS and "uuid" in entry and "parentUuid" in entry


def load_claude_code(content: Content) -> Iterator[Recording]:
    """Yield a recording for each reader: the agent, and sub-agents in the same file."""
    readers: dict[str, _Reader] = {}
    roots: dict[str, str] = {}  # uuid of an entry of a side chain -> its reader
    began: float | None = None
    name = directory = ""
    for line, entry in content.objects():
        if entry.get("type") not in _KINDS:
            continue
        name, directory = name or str(entry.get("sessionId") or ""), directory or str(entry.get("cwd") or "")
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
        if found.items:  # requests without usage are dropped
            items = tuple(item for item in found.items if not isinstance(item, RequestSent) or item.prompt)
            known = found.first_call, found.model, directory
            yield Recording(name or content.path, "claude-code", items, reader, "claude-code", began, *known)


FORM = Form("claude-code", is_claude_code, load_claude_code, ("CLAUDE_CONFIG_DIR", "~/.claude", "projects"))


class _Node(NamedTuple):
    """The position of an entry in the tree."""

    answer: str | None  # ID of its own answer, or the newest one above it; "": none above; None: not known
    chars: int = 0  # typed by the user since that answer
    files: tuple[ToolCall, ...] = ()  # shown by Claude Code itself since that answer
    compacts: bool = False  # True if Claude Code compacted since that answer
    kept: tuple[str, ...] = ()  # uuids that a compaction kept


class _Reader:
    """One reader's entries, in the order of the file."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.first_call = self.model = ""
        self._nodes: dict[str, _Node] = {}
        self._live: dict[str, None] = {}  # IDs of the answers above the newest one, in order
        self._before: dict[str, str] = {}  # ID of an answer -> ID of the answer above it
        self._asked: dict[str, tuple[Entry, Entry]] = {}  # call ID -> its block, the entry
        self._results: dict[str, tuple[Entry, Entry]] = {}  # the same for its result
        self._answer_of: dict[str, str] = {}  # ID of a call or a shown file -> ID of its answer
        self._requests: dict[str, int] = {}  # ID of an answer -> index of its request in `items`

    def take(self, entry: Entry) -> None:
        """Process the next entry."""
        message, parent = dict_in(entry.get("message")), entry.get("parentUuid", "")
        above = _Node("") if parent is None else self._nodes.get(parent, _Node(None))
        node = _node_below(above, entry, message)
        if entry.get("type") == "assistant" and message.get("model") != _SYNTHETIC:
            node = _Node(answer := _answer_of(entry))
            self.model = self.model or str(message.get("model") or "")
            if answer not in self._live:
                self._begin(answer, above)
            self._bill(answer, message)
            for block in list_in(message.get("content")):
                if block.get("type") == "tool_use":
                    self._asked[str(block["id"])] = block, entry
                    self._answer_of[str(block["id"])] = answer
                    self.first_call = self.first_call or str(block["id"])
                    self._match(str(block["id"]))
        elif entry.get("type") == "user":
            for block in map(dict_in, list_in(message.get("content"))):
                if block.get("type") == "tool_result":
                    self._results[str(block.get("tool_use_id"))] = block, entry
                    self._match(str(block.get("tool_use_id")))
        self._nodes[str(entry.get("uuid"))] = node

    def _match(self, name: str) -> None:
        """Add a call if its result is known too. The result of a parallel call may come first."""
        if name in self._asked and name in self._results:
            block, entry = self._results.pop(name)
            made = _call(name, *self._asked.pop(name), block, dict_in(entry.get("toolUseResult")))
            batch, at = self._answer_of.get(name, ""), epoch_of(entry.get("timestamp"))
            self.items.append(replace(made, batch=batch, at=at))

    def _begin(self, answer: str, above: _Node) -> None:
        """Record the request before a new answer. Everything `above` was sent with it."""
        before = len(self._answer_of)
        if above.answer is not None:  # None: only the file is damaged, not the conversation
            self._go_back(above.answer, above.kept)
            self._before.setdefault(answer, above.answer)
        if len(self._answer_of) < before or above.files:
            self.items.append(HistoryRemoval(frozenset(self._answer_of), above.files, above.compacts))
            self._answer_of.update((file.call_id, answer) for file in above.files)
        self._live[answer] = None
        self._requests[answer] = len(self.items)
        self.items.append(RequestSent(added=above.chars))

    def _go_back(self, answer: str, kept: Collection[str]) -> None:
        """Drop the live answers after this one. For "", drop all except the answers that a compaction kept."""
        while answer and answer not in self._live:  # an earlier step back dropped it
            answer = self._before.get(answer, "")
        if answer == next(reversed(self._live), ""):
            return
        order = list(self._live)
        kept_answers = {self._nodes[uuid].answer for uuid in kept if uuid in self._nodes}
        keep = set(order[: order.index(answer) + 1]) if answer else kept_answers
        self._live = {name: None for name in order if name in keep}
        self._answer_of = {name: of for name, of in self._answer_of.items() if of in self._live}

    def _bill(self, answer: str, message: Entry) -> None:
        """Set the tokens of an answer's request. Call this for every entry, because later ones have the final
        numbers."""
        usage, index = message.get("usage"), self._requests[answer]
        before = self.items[index]
        assert isinstance(before, RequestSent)
        hour = count_in(usage, "cache_creation", "ephemeral_1h_input_tokens")
        self.items[index] = RequestSent(
            fresh=count_in(usage, "input_tokens"),
            cache_write=count_in(usage, "cache_creation_input_tokens") - hour,
            cache_write_hour=hour,
            cache_read=count_in(usage, "cache_read_input_tokens"),
            output=count_in(usage, "output_tokens"),
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
    """Return the number of characters in a block of an answer."""
    given = dict_in(block.get("input"))
    return len(str(block.get("text") or block.get("thinking") or "")) + (len(json.dumps(given)) if given else 0)


def _shown_file(entry: Entry) -> ToolCall | None:
    """Return a file that Claude Code showed to the model by itself, or None if the entry has none. The user named the
    file, or a compaction restored it."""
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
        """Return the answer in which the model made this call, or an empty entry if it is not found."""
        return self._find(f'"id":{json.dumps(call_id)}', lambda entry: call_id in _blocks_by(entry, "id"))[0]

    def result_of(self, call_id: str) -> str | None:
        """Return the text that the model got as the result of this call, or None if it is not in the file yet."""
        result, at = self._result(call_id)
        block = _blocks_by(result, "tool_use_id").get(call_id)
        return None if at < 0 or block is None else "\n".join(_texts_in(block.get("content")))

    def lines_of(self, source: str, call_id: str, section: str | None = None) -> set[str]:
        """Return the lines of `source` that were in the request which led to the call `call_id`, without line numbers.
        Return an empty set if that is not proven.

        `source`: the ID of a call, with its result, or of a restored file. `section`: a text that a hook restored after
        a compaction; if given, return its lines instead.
        """
        asked, there = self.call(call_id), self.call(source)
        result, at = self._result(source)
        if section is not None:
            there, at = self._find('"type":"hook_additional_context"', lambda entry: section in _added(entry))
        elif not there:
            there, at = self._entry(source)
        if at < 0 or not asked or _answer_of(asked) == _answer_of(there):
            return set()  # unknown, or parallel calls
        first = self._first_sent(at, asked) if _answer_of(there) in map(_answer_of, self._above(asked)) else ()
        for name in first:  # if a message was sent in another form than it has here, a line of its own has that form
            blob, _ = self._find(f'"hash":"{name}"', lambda entry: source in _blocks_by(entry, "tool_use_id"))
            result = blob or result
        blocks = _blocks_by(there, "id").get(source), _blocks_by(result, "tool_use_id").get(source)
        return _lines_in([*blocks, there.get("rendered")]) if first else set()

    def source(self, conversation: str) -> str | None:
        """Return the conversation that this one was forked from, or None if none is known. Its older answers were
        requested there."""
        at = self._data.rfind(b'"requestSessionId":"')
        entry = _read_entry(self._line(self._data.rfind(b"\n", 0, at) + 1)) if at >= 0 else {}
        name = entry.get("requestSessionId")
        return name if isinstance(name, str) and name != conversation else None

    def may_have_removed(self, since: float) -> bool:
        """Return True if results may have been removed, or if the server may remove some with the newest request. Also
        return True if no known request was sent at `since` (seconds since the epoch) or later."""
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
        """Yield (ID, file) for each file that Claude Code itself showed again after the newest compaction."""
        at = self._data.rfind(b'"subtype":"compact_boundary"')
        for line in self._data[at:].split(b"\n") if at >= 0 else ():
            entry = _read_entry(line) if b'"type":"file"' in line else {}
            file = _attached_file(entry)
            if file and "rendered" in entry:
                yield str(entry.get("uuid")), file

    def _above(self, entry: Entry) -> Iterator[Entry]:
        """Yield the entries above this one, back to the point where older results were cleared."""
        at = None
        while entry.get("parentUuid") and entry.get("subtype") != "microcompact_boundary":
            entry, at = self._entry(entry["parentUuid"], at)
            yield entry

    def _first_sent(self, at: int, asked: Entry) -> Collection[str]:
        """Return the hashes of the messages that were new in the first request after `at`. Return none if the request
        answered by `asked` did not contain them all, or if the server may have cleared some."""
        first: Entry = {}
        while not first.get("tail") and at >= 0:  # a repeated request has none
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
        """Return the last entry that contains the needle and fits, and its offset in bytes, or ({}, -1)."""
        raw, at = needle.encode(), len(self._data) if before is None else before
        while (at := self._data.rfind(raw, 0, at)) >= 0:
            at = self._data.rfind(b"\n", 0, at) + 1
            if (entry := _read_entry(self._line(at))) and fits(entry):
                return entry, at
        return {}, -1

    def _line(self, at: int) -> bytes:
        return self._data[at : self._data.find(b"\n", at)]  # skip the last line if it is half written


def _read_entry(line: bytes) -> Entry:
    """Return the entry of a line, or an empty entry if the line is damaged."""
    try:
        return dict_in(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _blocks_by(entry: Entry, key: str) -> Mapping[Any, Entry]:
    """Return the blocks of an entry's message by their ID, which is in `key`."""
    content = dict_in(entry.get("message")).get("content")
    blocks = map(dict_in, list_in(content))
    return {block[key]: block for block in blocks if isinstance(block.get(key), str)}


def _answer_of(entry: Entry) -> str:
    """Return the ID that the entries of one answer share."""
    return str(dict_in(entry.get("message")).get("id") or entry.get("uuid"))


def _attached_file(entry: Entry) -> Entry:
    """Return the file that Claude Code showed by itself, or an empty object if the entry has none."""
    return dict_in(dict_in(dict_in(entry.get("attachment")).get("content")).get("file"))


def _added(entry: Entry) -> list[Any]:
    """Return the texts that hooks added."""
    return list_in(dict_in(entry.get("attachment")).get("content"))


def _may_clear(request: Entry) -> bool:
    """Return True if the request let the server edit more than thinking."""
    edits = dict_in(dict_in(request.get("params")).get("context_management")).get("edits") or ()
    return any(not str(dict_in(edit).get("type")).startswith("clear_thinking") for edit in edits)


def _lines_in(value: object) -> set[str]:
    """Return the lines of all strings inside a value, without the line numbers before them."""
    if isinstance(value, str):
        return set(map(bare, value.split("\n")))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(_lines_in, inner))


def _texts_in(content: object) -> list[str]:
    """Return the texts of a result's content: a string, or blocks."""
    blocks = [{"text": content}] if isinstance(content, str) else map(dict_in, list_in(content))
    return [block["text"] for block in blocks if isinstance(block.get("text"), str)]
