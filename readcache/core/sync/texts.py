"""Read the texts of a message list for `sync`. Only changed messages are read again.

A message is compared with a copy from when it was read, not with itself, because harnesses change messages in place.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from readcache.core.judging.marker import may_contain
from readcache.core.messages.messages import Kind, Part, normalise_one, parse_arguments, plain
from readcache.core.sync.locate import TAKEN, CharSpan

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(slots=True, eq=False)
class MessageText:
    """One text in a message. `raw`: as it is in the message. `content`: as it is read."""

    raw: str
    content: str
    kind: Kind
    own: bool  # the model wrote it
    call_id: str | None
    has_twin: bool = False  # it is JSON, and another text has the content of its strings
    gone: bool = False  # the message is no longer in the list
    claims: dict[Hashable, CharSpan] = field(default_factory=dict)  # spans of `content`, by their delivery
    _free: str | None = None
    _marked: list[tuple[int, str]] | None = None

    def claim(self, key: Hashable, char_span: CharSpan) -> None:
        """Record that characters start to end - 1 of the content belong to the delivery `key`."""
        self.claims[key] = char_span
        self._free = self._marked = None

    def release(self, key: Hashable) -> None:
        """Remove the claim of a delivery."""
        self.claims.pop(key, None)
        self._free = self._marked = None

    @property
    def free(self) -> str:
        """The content at its full length, with the claimed characters masked."""
        if self._free is None:
            self._free = self.content
            for start, end in self.claims.values():
                self._free = self._free[:start] + TAKEN * (end - start) + self._free[end:]
        return self._free

    def rewritten(self, changes: Mapping[CharSpan, str]) -> str | None:
        """Return `raw` with the texts of these spans, which must be markers, replaced. Return None if any other
        character would change, because a rewrite of the list must lose nothing."""
        if not all(_may_be_marker(self.content[start:end]) for start, end in changes):
            return None
        content = self.content
        for (start, end), new in sorted(changes.items(), reverse=True):
            content = content[:start] + new + content[end:]
        if self.content == self.raw:
            return content
        raw = _in_strings(self.raw, {self.content[start:end]: new for (start, end), new in changes.items()})
        return raw if strings_of(raw) == content else None

    def marked_lines(self, tag: str) -> list[tuple[int, str]]:
        """Return (start, line) for the free lines that may contain markers of this session."""
        if self._marked is None:
            self._marked = []
            at = 0
            for line in self.free.split("\n") if may_contain(self.free, tag) else ():
                self._marked += [(at, line)] * (may_contain(line, tag))
                at += len(line) + 1
        return self._marked


def _may_be_marker(text: str) -> bool:
    """Return True if the text may be a marker, or the rest of a truncated one. A rewrite removes nothing else."""
    return text.startswith("[") and "\n" not in text


def _in_strings(raw: str, changes: Mapping[str, str]) -> str:
    """Return the JSON with markers replaced in its strings."""

    def encode(found: re.Match[str]) -> str:
        decoded: str = json.loads(found[0], strict=False)
        changed = decoded
        for before, after in changes.items():
            changed = changed.replace(before, after)
        return found[0] if changed == decoded else json.dumps(changed, ensure_ascii=False)

    return _JSON_STRING.sub(encode, raw)


def strings_of(raw: str) -> str | None:
    """Return the strings of a JSON object as one text. Return None for any other text."""
    decoded = parse_arguments(raw) if raw.startswith("{") else None
    return None if decoded is None else "\n".join(value for value in decoded.values() if isinstance(value, str))


@dataclass(slots=True, eq=False)
class _Entry:
    """A message as it was when it was read."""

    copy: object
    object_id: int  # `id` of the message then, which finds it first when the list shifts
    role: str
    parts: tuple[Part, ...]
    texts: tuple[MessageText, ...]
    marked: tuple[MessageText, ...] | None = None  # the texts that may contain a marker, the last first


class MessageTexts:
    """The texts of one message list. `update` costs a comparison for each unchanged message."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._named: defaultdict[tuple[Kind, str], list[MessageText]] = defaultdict(list)
        self._marked: list[MessageText] | None = None
        self._order: dict[MessageText, tuple[int, int]] | None = None

    def update(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Replace the list by this one."""
        old = self._entries
        same = [entry.copy == message for entry, message in zip(old, messages, strict=False)]
        if all(same) and len(old) == len(messages):
            return
        self._marked = self._order = None
        first = same.index(False) if False in same else len(same)  # all messages before it are unchanged
        left = [entry for index, entry in enumerate(old[first:], first) if index >= len(same) or not same[index]]
        by_object = {entry.object_id: entry for entry in left}
        reused: set[_Entry] = set()
        entries = old[:first]
        for index, message in enumerate(messages[first:], first):
            before = old[index] if index < len(old) else None
            if before is None or not same[index]:
                before = by_object.get(id(message), before)
                if before in reused:
                    before = None
                before = self._read(message, before)
                reused.add(before)
            entries.append(before)
        for entry in left:
            if entry not in reused:
                self._drop(entry)
        self._entries = entries

    def named(self, kind: Kind, call_id: str) -> list[MessageText]:
        """Return the calls, or the results, with this ID, in order."""
        return self._named.get((kind, call_id), [])

    def knows(self, call_id: str) -> bool:
        """Return True if any call or result has this ID."""
        return (Kind.RESULT, call_id) in self._named or (Kind.CALL, call_id) in self._named

    @property
    def has_ids(self) -> bool:
        """True if any call or result has an ID."""
        return bool(self._named)

    def inputs(self) -> list[tuple[str, str]]:
        """See `messages.inputs_of`."""
        texts = (text for entry in self._entries for text in entry.texts)
        return [(text.call_id or "", text.content) for text in texts if text.own and text.kind is Kind.CALL]

    def newest_first(self) -> Iterator[MessageText]:
        """Yield every text, from the end of the list."""
        for entry in reversed(self._entries):
            yield from reversed(entry.texts)

    def order(self) -> Mapping[MessageText, tuple[int, int]]:
        """Return the position of each text: the index of its message, and its index among the message's texts."""
        if self._order is None:
            entries = enumerate(self._entries)
            self._order = {text: (at, k) for at, entry in entries for k, text in enumerate(entry.texts)}
        return self._order

    def marked(self, tag: str) -> list[MessageText]:
        """Return the texts that may contain markers of this session, from the end of the list. Each text is checked
        only once."""
        if self._marked is None:
            self._marked = []
            for entry in reversed(self._entries):
                if entry.marked is None:
                    texts = (text for text in reversed(entry.texts) if may_contain(text.content, tag))
                    entry.marked = tuple(text for text in texts if not text.has_twin)
                self._marked += entry.marked
        return self._marked

    def opening(self) -> list[MessageText]:
        """Return the texts before the model's first message: no tool can have answered yet."""
        entries = takewhile(lambda entry: entry.role != "assistant", self._entries)
        return [text for entry in entries for text in entry.texts]

    def _read(self, message: Mapping[str, Any], before: _Entry | None) -> _Entry:
        """Return the entry of a message. Return `before` itself if the model reads the same in it."""
        if before is not None and before.copy == message:
            return before
        new = normalise_one(message)
        if before is not None and (before.role, before.parts) == (new.role, new.parts):
            before.copy, before.object_id = plain(message), id(message)
            return before
        texts = tuple(text for part in new.parts for text in _texts(part, own=new.role == "assistant"))
        for text in texts:
            if text.call_id is not None:
                self._named[text.kind, text.call_id].append(text)
        return _Entry(plain(message), id(message), new.role, new.parts, texts)

    def _drop(self, entry: _Entry) -> None:
        for text in entry.texts:
            text.gone = True
            if text.call_id is not None:
                same = self._named[text.kind, text.call_id]
                same.remove(text)
                if not same:
                    del self._named[text.kind, text.call_id]


def _texts(part: Part, *, own: bool) -> Iterator[MessageText]:
    """Yield the texts of a part. A JSON object is read a second time for the strings in it."""
    # The APIs themselves drop thinking after a turn. Images and other parts contain no lines.
    # Some harnesses show every output as JSON, from the first one on (mini-swe-agent with its own configuration). With
    # the strings, their lines look the same everywhere.
    if part.kind not in (Kind.TEXT, Kind.CALL, Kind.RESULT):
        return
    strings = None if own else strings_of(part.text)
    yield MessageText(part.text, part.text, part.kind, own, part.call_id, has_twin=strings is not None)
    if strings is not None:
        yield MessageText(part.text, strings, part.kind, own, part.call_id)
