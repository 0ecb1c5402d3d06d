"""pi: `~/.pi/agent/sessions/*/*.jsonl`, a tree of entries by `id` and `parentId`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from readcache.transcripts.records import Content, Form, Recording, RequestSent, Turns
from readcache.transcripts.values import block_text, count_in, int_in, list_in, object_in, said_in

Entry = Mapping[str, Any]


def is_pi(row: Mapping[str, Any]) -> bool:
    """Return True for the first line of a session, and for each of its messages."""
    if row.get("type") == "session":
        return "cwd" in row and "id" in row
    return row.get("type") == "message" and "parentId" in row and isinstance(row.get("message"), dict)


def load_pi(content: Content) -> Iterator[Recording]:
    """Yield one recording."""
    session = _PiSession()
    for _, row in content.objects():
        session.take(row)
    yield session.turns.recording(session.name or content.path, "pi")


FORM = Form("pi", is_pi, load_pi, ("PI_CODING_AGENT_DIR", "~/.pi/agent", "sessions"))


def _with_span(given: Entry) -> Entry:
    """Return the arguments of a read with `start` and `end` instead of `offset` and `limit`.

    `offset` and `start` are line numbers from 1, `limit` is a number of lines, and `end` is the last line, or None.
    """
    rest = {name: value for name, value in given.items() if name not in ("offset", "limit")}
    start, limit = int_in(given.get("offset")) or 1, int_in(given.get("limit"))
    return {**rest, "start": start, "end": None if limit is None else start + limit - 1}


class _PiSession:
    def __init__(self) -> None:
        self.turns = Turns()
        self.name = ""
        self._cwd = "/"
        self._parents: dict[str, str | None] = {}
        self._tip: str | None = None
        self._call_at: dict[str, str] = {}  # ID of a result's entry -> its call
        self._compacted = dict[str, str]()  # ID of a compaction -> the first entry that it kept

    def take(self, row: Entry) -> None:
        """Process the next entry."""
        self.turns.at(row.get("timestamp"))
        if row.get("type") == "session":
            self._cwd, self.name = str(row.get("cwd") or "/"), str(row.get("id") or "")
            return
        entry, above = str(row.get("id")), row.get("parentId")
        parent = above if isinstance(above, str) else None
        self._parents[entry] = parent
        if row.get("type") == "compaction":
            self._compacted[entry] = str(row.get("firstKeptEntryId"))
            self.turns.trim(self._visible(entry))
        elif parent != self._tip and parent in self._parents:  # the user went back, and continued from there
            self.turns.trim(self._visible(entry), compacts=False)
        self._tip = entry
        if row.get("type") == "message":
            self._message(entry, object_in(row.get("message")))

    def _visible(self, entry: str) -> frozenset[str]:
        """Return the calls above an entry in the tree, back to the first entry that the newest compaction kept."""
        seen, passed, at = set[str](), set[str](), self._parents.get(entry)
        last = self._compacted.get(entry)
        while at is not None and at not in passed:  # in a damaged file, parents may form a cycle
            passed.add(at)
            if at in self._call_at:
                seen.add(self._call_at[at])
            if at == last:
                break
            last = last or self._compacted.get(at)
            at = self._parents.get(at)
        return frozenset(seen)

    def _message(self, entry: str, message: Entry) -> None:
        role = message.get("role")
        if role == "toolResult":
            call = str(message.get("toolCallId"))
            self._call_at[entry] = call
            self.turns.result(call, block_text(message.get("content")) or "", exit_code=None)
        elif role == "assistant":
            self._answer(message)
        else:
            self.turns.type(len(block_text(message.get("content")) or ""))

    def _answer(self, message: Entry) -> None:
        self.turns.answer()
        self.turns.by(message.get("model"))
        for block in map(object_in, list_in(message.get("content"))):
            if block.get("type") != "toolCall":
                self.turns.answer(len(str(block.get("text") or block.get("thinking") or "")))
                continue
            name, given = str(block.get("name")), object_in(block.get("arguments"))
            known = _with_span(given) if name == "read" else given
            self.turns.tool(str(block.get("id")), name, known, self._cwd, said_in(given))
        names = {"fresh": "input", "cache_write": "cacheWrite", "cache_read": "cacheRead", "output": "output"}
        self.turns.pay(RequestSent(**{ours: count_in(message, "usage", name) for ours, name in names.items()}))
