"""What of a Claude Code conversation the model was really sent, read from its transcript.

A transcript is a file of JSON lines. Each entry names its parent, so that the entries above an answer are its
conversation: what was rewound or summarised is not among them. `api-request` lines list the messages of each request by
hash, as a change of the request before: the first `keep` messages of `base`, and a `tail`. A result that was cleared or
cut since has another hash. A line that is damaged is no line; what cannot be read is not proven.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from readcache.transcripts.claude_code_entries import (
    Entry,
    as_dict,
    blocks_by,
    lines_in,
    may_clear,
    message_of,
    read_entry,
)

NEWEST, MOST = 2_000_000, 500_000_000  # bytes that are read of its end: at first, and where that is not enough
PAUSE, SOON, PATIENCE = 0.01, 0.2, 0.6  # seconds; Claude Code writes every 0.1 s what is new, if at all


class Transcript:
    """The newest part of a transcript."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def call(self, call_id: str) -> Entry:
        """The answer in which the model made this call; empty when it is not there."""
        return self._find(f'"id":{json.dumps(call_id)}', lambda entry: call_id in blocks_by(entry, "id"))[0]

    def lines_of(self, source: str, call_id: str) -> set[str]:
        """The lines, without numbers, of the call `source` and of its result, or of the restored file of that name, as
        they stood in the request that was answered with the call `call_id`. Empty where that is not proven."""
        asked, there = self.call(call_id), self.call(source)
        result, at = self._find(
            f'"tool_use_id":{json.dumps(source)}',
            lambda entry: entry.get("type") == "user" and source in blocks_by(entry, "tool_use_id"),
        )
        if not there:
            there, at = self._entry(source)
        if at < 0 or not asked or message_of(asked) == message_of(there):
            return set()  # not known, or made at once
        first = self._first_sent(at, asked) if message_of(there) in map(message_of, self._above(asked)) else ()
        for name in first:  # a message that was not sent as it stands here stands in a line of its own
            blob, _ = self._find(f'"hash":"{name}"', lambda entry: source in blocks_by(entry, "tool_use_id"))
            result = blob or result
        blocks = blocks_by(there, "id").get(source), blocks_by(result, "tool_use_id").get(source)
        return lines_in([*blocks, there.get("rendered")]) if first else set()

    def restored_files(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(id, file) for each file that Claude Code itself showed again after the newest compaction."""
        at = self._data.rfind(b'"subtype":"compact_boundary"')
        for line in self._data[at:].split(b"\n") if at >= 0 else ():
            entry = read_entry(line) if b'"type":"file"' in line else {}
            file = as_dict(as_dict(as_dict(entry.get("attachment")).get("content")).get("file"))
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
            first = read_entry(self._line(at + 1)) if at >= 0 else {}
        new, sent, left, before = set(first.get("tail", ())), set[str](), MOST, None
        name = asked.get("requestRef")
        while new - sent and name:
            request, before = self._find(f'"id":"{name}"', lambda entry: entry.get("type") == "api-request", before)
            if left == MOST and may_clear(request):
                return ()
            sent.update(request.get("tail", ())[: max(0, left - request.get("keep", 0))])
            left, name = min(left, request.get("keep", 0)), request.get("base")
        return () if new - sent else new

    def _entry(self, uuid: str, before: int | None = None) -> tuple[Entry, int]:
        return self._find(f'"uuid":{json.dumps(uuid)}', lambda entry: entry.get("uuid") == uuid, before)

    def _find(self, needle: str, fits: Callable[[Entry], bool], before: int | None = None) -> tuple[Entry, int]:
        """The last entry with the needle in it that fits, and where it begins; ({}, -1) when there is none."""
        raw, at = needle.encode(), len(self._data) if before is None else before
        while (at := self._data.rfind(raw, 0, at)) >= 0:
            at = self._data.rfind(b"\n", 0, at) + 1
            if (entry := read_entry(self._line(at))) and fits(entry):
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
