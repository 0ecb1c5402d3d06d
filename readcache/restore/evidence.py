"""What the log knows of each file that was shown: the evidence by which a restore plan ranks.

The view says what the reader can still see; here the whole log counts, whatever compactions took out of sight since:
what was forgotten at one compaction may be what the work comes back to after the next. What was undone by a rewind, or
never reached the reader, does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from readcache.model.events import Compacted, Delivered, Event, Forgot, Origin, Wrote
from readcache.model.key_view import Delivery, KeyView, Reference
from readcache.model.spans import Span
from readcache.model.view import View

# Calls. What a file's name in an output says about the next reads fades: over the recorded sessions, windows of 15 to
# 40 calls foresaw one to four points less. A line that was pointed at tells somewhat longer.
NAMED_WITHIN = 30
POINTED_WITHIN = 40
# What stands between a file's name and a line number: grep, compilers, linters; Python's and TypeScript's traces.
_LINE_NUMBER = re.compile(r"(?::|\(|\", line )(\d{1,7})")
_WORD = re.compile(r"[\w./-]+")
_NAME_OF = rf"(?<![\w.-]){{}}(?![\w-]|\.\w)(?:{_LINE_NUMBER.pattern.replace('{', '{{').replace('}', '}}')})?"


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """One file's traces in the log. Calls are counted back: the last call that was made is 1 call ago."""

    key: str
    calls: int  # of this context so far
    current: tuple[Reference, ...]  # showings of it as it is, as far as is known; oldest first
    outdated: tuple[Reference, ...]  # showings from before a write or a change; oldest first
    shown: tuple[tuple[int, Span], ...]  # (calls ago, lines) of each showing and of each marker in place of one
    writes: int
    named: int  # calls among the last NAMED_WITHIN that did not read it and whose command or output named it
    pointed: tuple[int, ...]  # lines that searches, compilers and stack traces named
    total: int | None  # lines in the file as it is, where its end was seen
    removed: bool  # the last that was heard of it is a command that deletes it or moves it away


def gather(log: Iterable[Event]) -> list[FileEvidence]:
    """The evidence for every key of which lines were shown, sorted by key."""
    past, writes, replaced = View(), Counter[str](), dict[str, int]()
    for event in log:
        if isinstance(event, Wrote):
            writes.update(event.keys)
        elif isinstance(event, Delivered):
            replaced |= {key: event.when.call for key in _shown_whole(event)}
        if not isinstance(event, Compacted | Forgot):
            past.apply(event)
    deliveries = [delivery for delivery in past.deliveries if delivery.event.origin is not Origin.RESTORED]
    showings = _showings(deliveries)
    keys = past.known_keys()
    namings = _namings(keys, [d for d in deliveries if past.calls.number - d.call < POINTED_WITHIN], past.calls.number)
    out = []
    for key in keys:
        known = past.key(key)
        named, pointed = namings.get(key, (0, ()))
        out.append(
            FileEvidence(
                key,
                past.calls.number,
                current=tuple(r for r in known.current if r.piece.first),
                outdated=tuple(r for r in known.stale if r.piece.first and r.delivery.call >= replaced.get(key, 0)),
                shown=tuple((past.calls.number + 1 - call, span) for call, span in showings.get(key, ())),
                writes=writes[key],
                named=named,
                pointed=tuple(pointed),
                total=known.total,
                removed=_is_removed(key, known),
            )
        )
    return out


def _shown_whole(event: Delivered) -> Iterator[str]:
    """The files of which the event has every line: no older line that differs is of the file any more."""
    known: dict[tuple[str, ...], int] = {}  # keys -> the next line, as far as they are shown without a gap
    for piece in event.pieces:
        if piece.first and piece.first == known.get(piece.keys, 1):
            known[piece.keys] = piece.first + piece.count
            if piece.eof and len(piece.keys) == 1:
                yield piece.keys[0]


def _is_removed(key: str, known: KeyView) -> bool:
    if known.current or known.invalid is None or not known.invalid.written:
        return False
    name = re.escape(key.rsplit("/", 1)[-1])
    removal = rf"\b(?:rm|unlink)\s[^;&|\n]*{name}(?![\w.-])|\bmv\s[^;&|\n]*{name}\s+[^\s;&|]"
    return re.search(removal, known.invalid.label) is not None


def _showings(deliveries: Sequence[Delivery]) -> dict[str, list[tuple[int, Span]]]:
    """(call, lines) of everything that was shown of each key, or asked for again and answered by a marker."""
    out: dict[str, list[tuple[int, Span]]] = {}
    for delivery in deliveries:
        for piece in delivery.event.pieces:
            for key in piece.keys if piece.first else ():
                out.setdefault(key, []).append((delivery.call, (piece.first, piece.first + piece.count - 1)))
        for pointer in delivery.event.pointers:
            if pointer.path is not None:
                out.setdefault(pointer.path, []).append((delivery.call, (pointer.start, pointer.end)))
    return out


def _namings(keys: Sequence[str], deliveries: Sequence[Delivery], calls: int) -> dict[str, tuple[int, list[int]]]:
    """For each key: how many calls of late named it, reads of it apart, and the lines that they named."""
    keys_of: dict[str, list[str]] = {}
    for key, name in _shortest_names(keys).items():
        keys_of.setdefault(name, []).append(key)
    odd = {name: _NAME_OF.format(re.escape(name)) for name in keys_of if not _WORD.fullmatch(name)}
    lines: dict[str, set[int]] = {}
    namers: dict[str, set[int]] = {}
    for delivery in deliveries:
        event = delivery.event
        own = {key for piece in event.pieces for key in piece.keys} | {p.path for p in event.pointers}
        for name, number in _named(f"{event.label}\n{event.text}", keys_of, odd):
            for key in keys_of[name]:
                if key not in own:
                    lines.setdefault(key, set()).update([number] if number else [])
                    if calls - delivery.call < NAMED_WITHIN:
                        namers.setdefault(key, set()).add(delivery.call)
    return {key: (len(namers.get(key, ())), sorted(numbers)) for key, numbers in lines.items()}


def _named(text: str, names: Container[str], odd: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """(name, the line number after it or 0) for each of the names that stands in the text as a word of its own.

    One walk over the text for all names: a word such as `src/app.py` is looked up by each of its parts and
    by each two of them. Names with other characters in them are `odd` and searched one by one.
    """
    for word in _WORD.finditer(text):
        parts = word[0].rstrip(".").split("/")
        for at, part in enumerate(parts):
            for name in (part, "/".join(parts[at - 1 : at + 1])) if at else (part,):
                if name in names:
                    number = _LINE_NUMBER.match(text, word.end()) if at == len(parts) - 1 else None
                    yield name, int(number[1]) if number else 0
    for name, pattern in odd.items():
        if name in text:
            yield from ((name, int(found[1] or 0)) for found in re.finditer(pattern, text))


def _shortest_names(keys: Sequence[str]) -> dict[str, str]:
    """What a text must hold to name each file: the last part of its path; the last two where files share the last."""
    paths = {key: key.rstrip("/") for key in keys}
    sharing = Counter(path.rsplit("/", 1)[-1] for path in set(paths.values()))
    out: dict[str, str] = {}
    for key, path in paths.items():
        parts = path.rsplit("/", 2)
        out[key] = parts[-1] if sharing[parts[-1]] == 1 else "/".join(parts[-2:])
    return {key: name for key, name in out.items() if name}
