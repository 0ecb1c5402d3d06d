"""The evidence by which a restore plan ranks: what the log knows about each result that was shown.

The view says what the reader can still see; here the whole log counts, whatever compactions took out of sight since:
what was forgotten at one compaction may be what the work comes back to after the next. What was undone by a rewind, or
never reached the reader, does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from readcache.core.model.events import (
    Amended,
    Compacted,
    Delivered,
    Event,
    Forgot,
    MappedSpan,
    MarkerRecord,
    Origin,
    Wrote,
)
from readcache.core.model.key_view import Delivery, VisibleSpan
from readcache.core.model.text import bodies, count_lines, find_numbering, path_in, split_lines
from readcache.core.model.view import View

_WORD = re.compile(r"[\w./-]+")
_NAME_OF = r"(?<![\w.-]){}(?![\w-]|\.\w)"
# What does not make a command another one, besides blanks: where errors go, and a filter at its end; at most so many.
_FILTER = re.compile(r"(?:2>&1|\|\s{0,9}(?:head|tail|grep)\b[^|;&]*)\Z")
MOST_FILTERS = 8

# Share of a result's lines that are lines of one file: hosts put a few of their own around them.
NEARLY_ALL = 0.75

# What other tools printed is seldom asked for again.
TOOLS = ("bash", "read")

Input = tuple[str, str]  # a call of the message list: its id, what the agent said in it


@dataclass(frozen=True, slots=True)
class Result:
    """A result that was shown, with the lines that it omitted, and the traces of its file in the log.

    Calls are counted back: the last call that was made is 1 call ago.
    """

    event: Delivered
    key: str | None  # the file that it shows and hardly anything else; None: of any other command or tool
    source_map: tuple[MappedSpan, ...]  # where its lines are; none if their numbers are not known
    age: int  # calls since it was given
    shown: int = 0  # calls since lines of the file were last shown, or asked for and answered by a marker
    written: int | None = None  # calls since the agent wrote the file
    named: int | None = None  # calls since a call that did not read the file named it in its command or arguments
    is_repeated: bool = False  # the command was run more than once
    is_newest: bool = True  # of its command
    changed: tuple[str, ...] = ()  # files whose lines it shows and that were written or changed since


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the log says: the view as if nothing had been omitted or forgotten, and its results, newest first."""

    past: View
    results: tuple[Result, ...]
    replaced: Mapping[str, int]  # file -> number of the call that last showed it whole


def gather(log: Iterable[Event], inputs: Iterable[Input] = ()) -> Evidence:
    """The evidence. `inputs`: the calls of the message list in order; those that are not in the log may name files
    too."""
    seen, past = View(), View()  # with markers, and with the lines that they stand for
    written, replaced, numbers = dict[str, int](), dict[str, int](), dict[str, int]()
    for event in log:
        if isinstance(event, Compacted | Forgot):
            continue
        if isinstance(event, Wrote):
            # without an id: another reader's write, with a number of that reader's calls
            number = numbers[event.call_id] = event.call if event.call_id else past.calls.number
            written |= {key: max(number, written.get(key, 0)) for key in event.keys}
        elif isinstance(event, Delivered):
            numbers[event.call_id] = event.when.call
        complete = _in_full(event, seen) if isinstance(event, Delivered | Amended) else event
        if isinstance(complete, Delivered):
            replaced |= dict.fromkeys(_fully_shown(complete), complete.when.call)
        seen.apply(event)
        past.apply(complete)
    return Evidence(past, tuple(_results(past, written, _said(past, numbers, inputs))), replaced)


def is_removed(past: View, key: str) -> bool:
    """True if the last command that named the file deleted it or moved it away."""
    known = past.key(key)
    if known.current or known.invalid is None or not known.invalid.written:
        return False
    name = re.escape(key.rsplit("/", 1)[-1])
    removal = rf"\b(?:rm|unlink)\s[^;&|\n]*{name}(?![\w.-])|\bmv\s[^;&|\n]*{name}\s+[^\s;&|]"
    return re.search(removal, known.invalid.label) is not None


# ------------------------------------------------------------ omitted lines


def _in_full(event: Delivered | Amended, seen: View) -> Delivered | Amended:
    """The event with the omitted lines in the place of their markers, as far as they are known."""
    if not event.markers:
        return event
    marked = {marker.line: marker for marker in event.markers}
    lines: list[str] = []
    source_map: list[MappedSpan] = []
    left: list[MarkerRecord] = []
    starts: list[int] = []  # old line -> new line
    for n, line in enumerate(split_lines(event.text)):
        starts.append(len(lines))
        marker = marked.get(n)
        omitted = _omitted(marker, seen) if marker is not None else []
        if marker is None or not omitted:
            left += [replace(marker, line=len(lines))] if marker is not None else []
            lines.append(line)
            continue
        if marker.path is not None:
            sep = _separator(omitted, marker, seen) if marker.numbered else None
            first = 0 if marker.numbered and sep is None else marker.start
            source_map.append(MappedSpan((marker.path,), len(lines), len(omitted), first, sep))
        lines += omitted
    source_map += [replace(mapped, at=starts[mapped.at]) for mapped in event.source_map]
    text = "".join(line + "\n" for line in lines)
    return replace(event, text=text, source_map=tuple(sorted(source_map, key=lambda p: p.at)), markers=tuple(left))


def _omitted(marker: MarkerRecord, seen: View) -> list[str]:
    """The lines that a marker stands for; none where they are not known."""
    lines = split_lines(marker.lines)
    if not lines:
        for span in marker.source_spans:
            for delivery in seen.of_call(span.call_id):
                if delivery.event.origin is span.origin:
                    lines += seen.bodies(VisibleSpan(delivery, MappedSpan((), span.at, span.count)))
    return lines if len(lines) == marker.end - marker.start + 1 else []


def _separator(lines: Sequence[str], marker: MarkerRecord, seen: View) -> str | None:
    """The separator in the omitted lines: the one under which they are the lines at the sources; None if unknown."""
    numbering = find_numbering(lines)
    if numbering is None or len(numbering.likely) == 1:
        return numbering and numbering.likely[0]
    there = [
        line
        for span in marker.source_spans
        for delivery in seen.of_call(span.call_id)
        if delivery.event.origin is span.origin
        for mapped in delivery.event.source_map
        if mapped.at <= span.at and span.at + span.count <= mapped.at + mapped.count
        for line in seen.bodies(VisibleSpan(delivery, replace(mapped, at=span.at, count=span.count)))
    ]
    return next((sep for sep in numbering.possible if bodies(lines, sep) == there), None)


def _fully_shown(event: Delivered) -> Iterator[str]:
    """The files that the event shows whole: an older line that differs is no longer in the file."""
    known: dict[tuple[str, ...], int] = {}  # keys -> the next line, as far as they are shown without a gap
    for mapped in event.source_map:
        if mapped.first and mapped.first == known.get(mapped.keys, 1):
            known[mapped.keys] = mapped.first + mapped.count
            if mapped.eof and len(mapped.keys) == 1:
                yield mapped.keys[0]


# ------------------------------------------------------------ results


def _results(past: View, written: Mapping[str, int], said: Sequence[_Said]) -> Iterator[Result]:
    """The results, newest first."""
    now = past.calls.number + 1
    deliveries = [d for d in past.deliveries if d.event.origin is not Origin.RESTORED]
    shown = {key: now - d.call for d in deliveries for key in _own(d)}
    keys = past.known_keys()
    named = _namings(keys, said)
    commands = Counter(_command(d.event.label) for d in deliveries)
    met: set[str] = set()
    for delivery in reversed(deliveries):
        event, command = delivery.event, _command(delivery.event.label)
        if event.account is None or event.account.tool not in TOOLS:
            continue
        changed = tuple(sorted(one for one in _own(delivery) if past.was_written_since(one, delivery)))
        for key, source_map in _files(event):
            yield Result(
                event,
                key,
                source_map,
                now - delivery.call,
                shown.get(key or "", 0),
                now - written[key] if key is not None and key in written else None,
                named.get(key or ""),
                commands[command] > 1,
                command not in met,
                changed,
            )
        met.add(command)


def _own(delivery: Delivery) -> frozenset[str]:
    """The files that a call showed or wrote."""
    return frozenset(key for mapped in delivery.event.source_map for key in mapped.keys)


def _files(event: Delivered) -> list[tuple[str | None, tuple[MappedSpan, ...]]]:
    """Each file whose lines a result shows, with where they are, if these are nearly all of it; without, if their
    numbers are not known. (None, ()) for any other result."""
    source_map = [p for p in event.source_map if len(p.keys) == 1 and not path_in(p.sep)]
    files: dict[str, list[MappedSpan]] = {}
    for mapped in source_map:
        files.setdefault(mapped.keys[0], []).append(mapped)
    is_read = sum(mapped.count for mapped in source_map) >= NEARLY_ALL * count_lines(event.text) and event.text
    if is_read and all(mapped.first for mapped in source_map):
        return [(key, tuple(of)) for key, of in files.items()]
    return [(next(iter(files)) if is_read and len(files) == 1 else None, ())]


def _command(label: str) -> str:
    for _ in range(MOST_FILTERS):
        label = label.rstrip()
        if (found := _FILTER.search(label)) is None:
            break
        label = label[: found.start()]
    return " ".join(label.split())


# ------------------------------------------------------------ names


@dataclass(frozen=True, slots=True)
class _Said:
    """What the agent said in a call `ago` calls ago."""

    ago: int
    text: str
    own: frozenset[str]  # files that the call showed or wrote: it does not name these


def _said(past: View, numbers: Mapping[str, int], inputs: Iterable[Input]) -> list[_Said]:
    now, number = past.calls.number + 1, 0
    said: list[_Said] = []
    for delivery in past.deliveries:
        event, own = delivery.event, _own(delivery)
        if event.origin is not Origin.RESTORED:
            said.append(_Said(now - delivery.call, event.label, own))
        if event.origin is Origin.COMMAND:
            said.append(_Said(now - delivery.call, event.text, own))
    for call_id, text in inputs:
        if call_id in numbers:
            number = numbers[call_id]
        elif number:  # the session was not told of it: it has the number of the last known call before
            said.append(_Said(now - number, text, frozenset()))
    return said


def _namings(keys: Sequence[str], said: Iterable[_Said]) -> dict[str, int]:
    """For each key: how many calls ago the agent last named it."""
    keys_of: dict[str, list[str]] = {}
    for key, name in _shortest_names(keys).items():
        keys_of.setdefault(name, []).append(key)
    odd = {name: re.compile(_NAME_OF.format(re.escape(name))) for name in keys_of if not _WORD.fullmatch(name)}
    named: dict[str, int] = {}
    for each in said:
        for name in _named(each.text, keys_of, odd):
            for key in keys_of[name]:
                if key not in each.own:
                    named[key] = min(each.ago, named.get(key, each.ago))
    return named


def _named(text: str, names: Container[str], odd: Mapping[str, re.Pattern[str]]) -> Iterator[str]:
    """Each name that occurs in the text as a whole word.

    One walk over the text for all names: a word such as `src/app.py` is looked up by each of its parts and
    by each two of them. Names with other characters in them are `odd` and searched one by one.
    """
    for word in _WORD.finditer(text):
        parts = word[0].rstrip(".").split("/")
        for at, part in enumerate(parts):
            for name in (part, "/".join(parts[at - 1 : at + 1])) if at else (part,):
                if name in names:
                    yield name
    yield from (name for name, pattern in odd.items() if name in text and pattern.search(text))


def _shortest_names(keys: Sequence[str]) -> dict[str, str]:
    """What a text must hold to name each file: the last part of its path; the last two where files share the last."""
    paths = {key: key.rstrip("/") for key in keys}
    sharing = Counter(path.rsplit("/", 1)[-1] for path in set(paths.values()))
    out: dict[str, str] = {}
    for key, path in paths.items():
        parts = path.rsplit("/", 2)
        out[key] = parts[-1] if sharing[parts[-1]] == 1 else "/".join(parts[-2:])
    return {key: name for key, name in out.items() if name}
