"""What the log knows of each file that was shown: the evidence by which a restore plan ranks.

The view says what the reader can still see; here the whole log counts, whatever compactions took out of sight since:
what was forgotten at one compaction may be what the work comes back to after the next. What was undone by a rewind, or
never reached the reader, does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from readcache.model.claims import path_of
from readcache.model.events import Compacted, Event, Forgot, Origin, Wrote
from readcache.model.key_view import Delivery, KeyView, Reference
from readcache.model.spans import Span
from readcache.model.view import View

# Calls. What a file's name in an output says about the next reads fades: over the recorded sessions, windows of 15 to
# 40 calls foresaw one to four points less. A line that was pointed at tells somewhat longer.
NAMED_WITHIN = 30
POINTED_WITHIN = 40
# What stands between a file's name and a line number: grep, compilers, linters; Python's and TypeScript's traces.
_LINE_NUMBER = r"(?::|\(|\", line )(\d{1,7})"


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
    removed: bool  # the last that was heard of it is a command that deletes it or moves it away


def gather(log: Iterable[Event]) -> list[FileEvidence]:
    """The evidence for every key of which lines were shown, sorted by key."""
    past, writes = View(), Counter[str]()
    for event in log:
        if isinstance(event, Wrote):
            writes.update(event.keys)
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
                outdated=tuple(r for r in known.stale if r.piece.first),
                shown=tuple((past.calls.number + 1 - call, span) for call, span in showings.get(key, ())),
                writes=writes[key],
                named=named,
                pointed=tuple(pointed),
                removed=_is_removed(key, known),
            )
        )
    return out


def _is_removed(key: str, known: KeyView) -> bool:
    if known.current or known.invalid is None or not known.invalid.written:
        return False
    name = re.escape(path_of(key).rsplit("/", 1)[-1])
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
    patterns = {key: _name_pattern(name) for key, name in _shortest_names(keys).items()}
    lines: dict[str, list[int]] = {}
    namers: dict[str, set[int]] = {}
    for delivery in deliveries:
        event = delivery.event
        own = {key for piece in event.pieces for key in piece.keys} | {p.path for p in event.pointers}
        text = f"{event.label}\n{event.text}"
        for key, (name, pattern) in patterns.items():
            if name not in text or key in own:
                continue
            found = [match[1] for match in pattern.finditer(text)]
            lines.setdefault(key, []).extend(int(number) for number in found if number)
            if found and calls - delivery.call < NAMED_WITHIN:
                namers.setdefault(key, set()).add(delivery.call)
    return {key: (len(namers.get(key, ())), sorted(set(numbers))) for key, numbers in lines.items()}


def _shortest_names(keys: Sequence[str]) -> dict[str, str]:
    """What a text must hold to name each file: the last part of its path; the last two where files share the last."""
    paths = {key: path_of(key).rstrip("/") for key in keys}
    sharing = Counter(path.rsplit("/", 1)[-1] for path in set(paths.values()))
    out: dict[str, str] = {}
    for key, path in paths.items():
        parts = path.rsplit("/", 2)
        out[key] = parts[-1] if sharing[parts[-1]] == 1 else "/".join(parts[-2:])
    return {key: name for key, name in out.items() if name}


def _name_pattern(name: str) -> tuple[str, re.Pattern[str]]:
    """The name as a word of its own, and a line number after it where there is one."""
    return name, re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)(?:{_LINE_NUMBER})?")
