"""The evidence by which a restore plan ranks: what the log knows about each file that was shown.

The view says what the reader can still see; here the whole log counts, whatever compactions took out of sight since:
what was forgotten at one compaction may be what the work comes back to after the next. What was undone by a rewind, or
never reached the reader, does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from readcache.model.events import Compacted, Delivered, Event, Forgot, Origin, Piece, Wrote
from readcache.model.key_view import Delivery, Invalidation, KeyView, Reference
from readcache.model.text import find_separator, split_lines
from readcache.model.view import View
from readcache.model.writes import concerns

# Calls. A line that a search or a trace named tells of the next reads for so long; 15 calls foresaw half a point less.
POINTED_WITHIN = 40
# What stands between a file's name and a line number: grep, compilers, linters; Python's and TypeScript's traces.
_LINE_NUMBER = re.compile(r"(?::|\(|\", line )(\d{1,7})")
_WORD = re.compile(r"[\w./-]+")
_NAME_OF = rf"(?<![\w.-]){{}}(?![\w-]|\.\w)(?:{_LINE_NUMBER.pattern.replace('{', '{{').replace('}', '}}')})?"

Input = tuple[str, str]  # a call of the message list: its id, what the agent said in it


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """One file's traces in the log. Calls are counted back: the last call that was made is 1 call ago."""

    key: str
    calls: int  # of this context so far
    current: tuple[Reference, ...]  # showings of it as it is, as far as is known; oldest first
    outdated: tuple[Reference, ...]  # showings from before a write or a change; oldest first
    shown: int | None  # calls since lines of it were shown, or asked for and answered by a marker
    written: int | None  # calls since the agent wrote it
    named: int | None  # calls since a call that did not read it named it in its command or arguments
    pointed: tuple[int, ...]  # lines that searches, compilers and stack traces named
    total: int | None  # lines in the file as it is, where its end was seen
    removed: bool  # the last command that named it deleted it or moved it away


@dataclass(frozen=True, slots=True)
class _Said:
    """A text in which files may be named: what was said or printed `ago` calls ago."""

    ago: int
    text: str
    by_agent: bool
    own: frozenset[str]  # files that the call showed or wrote: it does not name these


def gather(log: Iterable[Event], inputs: Iterable[Input] = ()) -> list[FileEvidence]:
    """The evidence for every key of which lines were shown, sorted by key. `inputs`: the calls of the message list in
    order; those that are not in the log may name files too."""
    past, written, replaced, numbers = View(), dict[str, int](), dict[str, int](), dict[str, int]()
    elsewhere: dict[str, KeyView] = {}
    for event in log:
        if isinstance(event, Wrote):
            numbers[event.call_id] = event.call
            written |= {key: max(event.call, written.get(key, 0)) for key in event.keys}
        elif isinstance(event, Delivered):
            numbers[event.call_id] = event.when.call
            replaced |= {key: event.when.call for key in _shown_whole(event)}
        if not isinstance(event, Compacted | Forgot):
            past.apply(event)
        _invalidate(elsewhere, event)
        if isinstance(event, Delivered):
            for path, reference in _stood_elsewhere(past, event):
                elsewhere.setdefault(path, KeyView()).add(reference)
    now = past.calls.number + 1
    shown, said = _showings(past)
    said += [_Said(now - call, text, True, frozenset()) for call, text in _beside(numbers, inputs)]
    keys = sorted({*past.known_keys(), *elsewhere})
    named, pointed = _namings(keys, said)
    out = []
    for key in keys:
        known, other = past.key(key), elsewhere.get(key, KeyView())
        out.append(
            FileEvidence(
                key,
                past.calls.number,
                current=_in_order(known.current, other.current),
                outdated=tuple(
                    reference
                    for reference in _in_order(known.stale, other.stale)
                    if reference.delivery.call >= replaced.get(key, 0)
                ),
                shown=now - shown[key] if key in shown else None,
                written=now - written[key] if key in written else None,
                named=named.get(key),
                pointed=tuple(sorted(pointed.get(key, ()))),
                total=known.total,
                removed=_is_removed(key, known),
            )
        )
    return out


def _stood_elsewhere(past: View, event: Delivered) -> Iterator[tuple[str, Reference]]:
    """The lines that a reply omitted because they stood in something other than a showing of the file (a diff, a
    search, a copy): counted as if the reply had shown them."""
    for pointer in event.pointers:
        told = [
            (stand, d)
            for stand in pointer.stands
            for d in past.of_call(stand.call_id)
            if d.event.origin is stand.origin
        ]
        if pointer.path is None or any(pointer.path in piece.keys for _, d in told for piece in d.event.pieces):
            continue
        there = [past.bodies(Reference(d, Piece((), stand.at, stand.count))) for stand, d in told]
        lines = split_lines(pointer.lines) or [line for lines in there for line in lines]
        if len(lines) == pointer.end - pointer.start + 1:
            sep = find_separator(lines) if pointer.numbered else None
            piece = Piece((pointer.path,), 0, len(lines), pointer.start, sep)
            shown = replace(event, text="".join(line + "\n" for line in lines), pieces=(piece,), pointers=())
            yield pointer.path, Reference(Delivery(shown, past.of_call(event.call_id)[-1].order), piece)


def _invalidate(files: Mapping[str, KeyView], event: Event) -> None:
    """True if the event makes older lines of these files stale."""
    changed = (*event.keys, *event.perhaps) if isinstance(event, Wrote) else getattr(event, "changed", ())
    for key, known in files.items() if changed else ():
        if any(concerns(one, key) for one in changed):
            known.invalidate(Invalidation(written=isinstance(event, Wrote)), 0)


def _in_order(shown: Iterable[Reference], more: Iterable[Reference]) -> tuple[Reference, ...]:
    """Showings of numbered lines, oldest first."""
    return tuple(sorted((r for r in (*shown, *more) if r.piece.first), key=lambda r: r.delivery.order))


def _beside(numbers: Mapping[str, int], inputs: Iterable[Input]) -> Iterator[tuple[int, str]]:
    """(number, text) of the calls that the session was not told of. The number is that of the last known call
    before."""
    number = 0
    for call_id, text in inputs:
        if call_id in numbers:
            number = numbers[call_id]
        elif number:
            yield number, text


def _shown_whole(event: Delivered) -> Iterator[str]:
    """The files that the event shows whole: an older line that differs is no longer in the file."""
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


def _showings(past: View) -> tuple[dict[str, int], list[_Said]]:
    """The call that last showed each file, a restored section apart; and every text in which files may be named."""
    shown: dict[str, int] = {}
    said: list[_Said] = []
    for delivery in past.deliveries:
        event, ago = delivery.event, past.calls.number + 1 - delivery.call
        if event.origin is Origin.RESTORED:
            continue
        own = {key for piece in event.pieces for key in piece.keys} | {p.path for p in event.pointers if p.path}
        shown |= dict.fromkeys(own, delivery.call)
        said.append(_Said(ago, event.label, True, frozenset(own)))
        said.append(_Said(ago, event.text, event.origin is Origin.COMMAND, frozenset(own)))
    return shown, said


def _namings(keys: Sequence[str], said: Iterable[_Said]) -> tuple[dict[str, int], dict[str, set[int]]]:
    """For each key: how many calls ago the agent last named it, and which of its lines recent texts named."""
    keys_of: dict[str, list[str]] = {}
    for key, name in _shortest_names(keys).items():
        keys_of.setdefault(name, []).append(key)
    odd = {name: _NAME_OF.format(re.escape(name)) for name in keys_of if not _WORD.fullmatch(name)}
    named: dict[str, int] = {}
    pointed: dict[str, set[int]] = {}
    for each in said:
        is_late = each.ago <= POINTED_WITHIN
        for name, number in _named(each.text, keys_of, odd) if each.by_agent or is_late else ():
            for key in keys_of[name]:
                if key in each.own:
                    continue
                if each.by_agent:
                    named[key] = min(each.ago, named.get(key, each.ago))
                if number and is_late:
                    pointed.setdefault(key, set()).add(number)
    return named, pointed


def _named(text: str, names: Container[str], odd: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """(name, the line number after it or 0) for each name that occurs in the text as a whole word.

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
