"""What of a Claude Code conversation the model was really sent, read from its transcript.

A transcript is a file of JSON lines. Each entry names its parent, so that the entries above an answer are its
conversation: what was rewound or summarised is not among them. `api-request` lines list the messages of each request by
hash, as a change of the request before: the first `keep` messages of `base`, and a `tail`. A result that was cleared or
cut since has another hash. A line that is damaged is no line; what cannot be read is not proven.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Entry = Mapping[str, Any]
NEWEST, MOST = 2_000_000, 500_000_000  # bytes that are read of its end: at first, and where that is not enough
_NUMBER = re.compile(r"^ *\d+(?:\t|→|: ?|\| ?|\. |-)")
PAUSE, SOON, PATIENCE = 0.01, 0.2, 0.6  # seconds; Claude Code writes every 0.1 s what is new, if at all


class Transcript:
    """The newest part of a transcript."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def call(self, call_id: str) -> Entry:
        """The answer in which the model made this call; empty when it is not there."""
        return self._find(f'"id":{json.dumps(call_id)}', lambda entry: call_id in _blocks(entry, "id"))[0]

    def lines_of(self, source: str, call_id: str) -> set[str]:
        """The lines, without numbers, of the call `source` and of its result, or of the restored file of that name, as
        they stood in the request that was answered with the call `call_id`. Empty where that is not proven."""
        asked, there = self.call(call_id), self.call(source)
        result, at = self._find(f'"tool_use_id":{json.dumps(source)}', lambda e: source in _blocks(e, "tool_use_id"))
        if not there:
            there, at = self._entry(source)
        is_known = at >= 0 and asked and _message(asked) != _message(there)  # and not made at once
        if is_known and _message(there) in map(_message, self._above(asked)) and self._is_unchanged(at, asked):
            blocks = _blocks(there, "id").get(source), _blocks(result, "tool_use_id").get(source)
            return _lines_in([*blocks, there.get("rendered")])
        return set()

    def restored_files(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(id, file) for each file that Claude Code itself showed again after the newest compaction."""
        at = self._data.rfind(b'"subtype":"compact_boundary"')
        for line in self._data[at:].split(b"\n") if at >= 0 else ():
            entry = _read(line) if b'"type":"file"' in line else {}
            file = _dict(_dict(_dict(entry.get("attachment")).get("content")).get("file"))
            if file and "rendered" in entry:
                yield str(entry.get("uuid")), file

    def _above(self, entry: Entry) -> Iterator[Entry]:
        """The entries above that one, up to where older results were cleared."""
        at = None
        while entry.get("parentUuid") and entry.get("subtype") != "microcompact_boundary":
            entry, at = self._entry(entry["parentUuid"], at)
            yield entry

    def _is_unchanged(self, at: int, asked: Entry) -> bool:
        """True if the request behind `asked` held the messages that were new in the first request after `at`."""
        first: Entry = {}
        while not first.get("tail") and at >= 0:  # a request that was made again has none
            at = self._data.find(b'\n{"type":"api-request",', at + 1)
            first = _read(self._line(at + 1)) if at >= 0 else {}
        new, sent, left, before = set(first.get("tail", ())), set[str](), MOST, None
        name = asked.get("requestRef")
        while new - sent and name:
            request, before = self._find(f'"id":"{name}"', lambda entry: entry.get("type") == "api-request", before)
            if left == MOST and _may_clear(request):
                return False
            keep, tail = request.get("keep", 0), request.get("tail", ())
            sent.update(tail[: max(0, left - keep)])
            left, name = min(left, keep), request.get("base")
        return bool(new) and new <= sent

    def _entry(self, uuid: str, before: int | None = None) -> tuple[Entry, int]:
        return self._find(f'"uuid":{json.dumps(uuid)}', lambda entry: entry.get("uuid") == uuid, before)

    def _find(self, needle: str, fits: Callable[[Entry], bool], before: int | None = None) -> tuple[Entry, int]:
        """The last entry with the needle in it that fits, and where it begins; ({}, -1) when there is none."""
        raw, at = needle.encode(), len(self._data) if before is None else before
        while (at := self._data.rfind(raw, 0, at)) >= 0:
            at = self._data.rfind(b"\n", 0, at) + 1
            if (entry := _read(self._line(at))) and fits(entry):
                return entry, at
        return {}, -1

    def _line(self, at: int) -> bytes:
        return self._data[at : self._data.find(b"\n", at)]  # the last, where it is half written, is none


def transcripts(path: str, call_id: str) -> Iterator[Transcript]:
    """The transcript as soon as the call is in it: its newest part, then all of it. Nothing when it does not come."""
    until = time.monotonic() + (PATIENCE if os.path.exists(path) else SOON)
    while not (newest := Transcript(tail(path))).call(call_id):
        if time.monotonic() > until:
            return
        time.sleep(PAUSE)
    yield newest
    if os.path.getsize(path) > NEWEST:
        yield Transcript(tail(path, MOST))


def tail(path: str, size: int = NEWEST) -> bytes:
    """The last bytes of a file; none where it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read()
    except OSError:
        return b""


def _read(line: bytes) -> Entry:
    try:
        return _dict(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _dict(value: object) -> Entry:
    return value if isinstance(value, dict) else {}


def _blocks(entry: Entry, key: str) -> Mapping[Any, Entry]:
    """The blocks of an entry's message by their id."""
    content = _dict(entry.get("message")).get("content")
    blocks = map(_dict, content if isinstance(content, list) else ())
    return {block[key]: block for block in blocks if isinstance(block.get(key), str)}


def _message(entry: Entry) -> object:
    """What the entries of one answer share."""
    return _dict(entry.get("message")).get("id") or entry.get("uuid")


def _may_clear(request: Entry) -> bool:
    """True if the server was asked to edit more than thinking."""
    edits = _dict(_dict(request.get("params")).get("context_management")).get("edits") or ()
    return any(not str(_dict(edit).get("type")).startswith("clear_thinking") for edit in edits)


def _lines_in(value: object) -> set[str]:
    """The lines of all strings inside a value, without the numbers in front of them."""
    if isinstance(value, str):
        return set(map(bare, value.split("\n")))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(_lines_in, inner))


def bare(line: str) -> str:
    """The line without the number in front of it."""
    return _NUMBER.sub("", line, count=1)
