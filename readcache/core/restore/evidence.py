"""The evidence for ranking a restore plan: everything that the log knows about each result that was shown.

The view says only what the reader can still see. Here the whole log counts, including calls that compactions removed. A
file that was forgotten at one compaction may be needed again after the next. Calls that a rewind undid, and texts that
never reached the reader, do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from readcache.core.judging.line_index import find_hunks
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
from readcache.core.model.text import bodies, find_numbering, path_in, split_lines
from readcache.core.model.view import View

_WORD = re.compile(r"[\w./-]+")
_NAME_OF = r"(?<![\w.-]){}(?![\w-]|\.\w)"
# Parts that do not distinguish two commands, besides blanks: a redirection of errors, and a filter at the end. At most
# MOST_FILTERS of them are ignored.
_FILTER = re.compile(r"(?:2>&1|\|\s{0,9}(?:head|tail|grep)\b[^|;&]*)\Z")
MOST_FILTERS = 8
# Commands that test, build or check a project. Their options and paths do not distinguish two of them either.
_TOOLS = (
    "biome|ctest|eslint|gofmt|golangci-lint|jest|make|mocha|mypy|ninja|nox|phpunit|pytest|rake|rspec|ruff|tox|tsc"
    "|unittest|vitest"
)
_CHECK = re.compile(
    r"(?:bun|cargo|deno|dotnet|go|(?:\./)?gradlew?|just|mise|mix|mvn|npm|npx|pnpm|poetry|python3?|swift|task|uv|yarn|zig)"
    rf" (?:run |exec |-m )?(?:build|check|clippy|fmt|lint|nextest|tests?|typecheck|vet|{_TOOLS})\b|(?:{_TOOLS})(?!\S)"
)
_PLAIN = re.compile(r"[a-z][\w:-]*|-m")

# Tools whose results count. The output of other tools is rarely requested again.
TOOLS = ("bash", "read")

Input = tuple[str, str]  # a call of the message list: its ID, the agent's text in it


@dataclass(frozen=True, slots=True)
class Trace:
    """The traces of one file in the log. Calls are counted back: the last call that was made is 1 call ago."""

    shown: int = 0  # calls since lines of the file were last shown, or requested and answered by a marker
    written: int | None = None  # calls since the agent wrote the file
    named: int | None = None  # calls since a call that did not read the file named it in its command or arguments


@dataclass(frozen=True, slots=True)
class Result:
    """A result that was shown, with the lines that it omitted, and the traces of its files in the log."""

    event: Delivered
    age: int  # calls since the result was shown, counted as in `Trace`
    traces: Mapping[str, Trace]  # by file that it may show
    is_repeated: bool  # the command was run more than once
    is_newest: bool  # no later result comes from the same command
    changed: tuple[str, ...]  # files that it may show, and that were written or changed later
    written_since: int  # number of files that were written later


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of the log: the view as if nothing had been omitted or forgotten, and its results, newest first."""

    past: View
    results: tuple[Result, ...]
    replaced: Mapping[str, int]  # file -> number of the call that last showed it whole


def gather(log: Iterable[Event], inputs: Iterable[Input] = ()) -> Evidence:
    """Return the evidence. `inputs`: the calls of the message list in order. Calls that are not in the log may name
    files too."""
    seen, past = View(), View()  # with markers, and with the omitted lines instead
    written, replaced, numbers = dict[str, int](), dict[str, int](), dict[str, int]()
    for event in log:
        if isinstance(event, Compacted | Forgot):
            continue
        if isinstance(event, Wrote):
            # A write without an ID is another reader's, and `event.call` then numbers that reader's calls.
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
    """Return True if the last command that wrote the file deleted it or moved it away."""
    known = past.key(key)
    if known.current or known.invalid is None or not known.invalid.written:
        return False
    name = re.escape(key.rsplit("/", 1)[-1])
    removal = rf"\b(?:rm|unlink)\s[^;&|\n]*{name}(?![\w.-])|\bmv\s[^;&|\n]*{name}\s+[^\s;&|]"
    return re.search(removal, known.invalid.label) is not None


# ------------------------------------------------------------ omitted lines


def _in_full(event: Delivered | Amended, seen: View) -> Delivered | Amended:
    """Return the event with the omitted lines instead of their markers, if these lines are known."""
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
        else:
            source_map += [replace(mapped, at=mapped.at + len(lines)) for mapped in _map_of_omitted(marker, seen)]
        lines += omitted
    source_map += [replace(mapped, at=starts[mapped.at]) for mapped in event.source_map]
    text = "".join(line + "\n" for line in lines)
    return replace(event, text=text, source_map=tuple(sorted(source_map, key=lambda p: p.at)), markers=tuple(left))


def _omitted(marker: MarkerRecord, seen: View) -> list[str]:
    """Return the lines that a marker replaces; an empty list if they are unknown."""
    lines = split_lines(marker.lines)
    if not lines:
        for span in marker.source_spans:
            for delivery in seen.of_call(span.call_id):
                if delivery.event.origin is span.origin:
                    lines += seen.bodies(VisibleSpan(delivery, MappedSpan((), span.at, span.count)))
    return lines if len(lines) == marker.end - marker.start + 1 else []


def _map_of_omitted(marker: MarkerRecord, seen: View) -> Iterator[MappedSpan]:
    """Yield the files of the omitted lines, as the sources have them, if the marker names no file. `at` counts from the
    first omitted line."""
    before = 0
    for span in marker.source_spans:
        for mapped in (
            m for d in seen.of_call(span.call_id) if d.event.origin is span.origin for m in d.event.source_map
        ):
            low, high = max(mapped.at, span.at), min(mapped.at + mapped.count, span.at + span.count)
            if low < high:
                sep = mapped.sep if not marker.lines else None
                yield MappedSpan(mapped.keys, before + low - span.at, high - low, sep=sep)
        before += span.count


def _separator(lines: Sequence[str], marker: MarkerRecord, seen: View) -> str | None:
    """Return the separator in the omitted lines: the one that makes them equal to the lines at the sources. Return None
    if it is unknown."""
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
    """Yield the files that the event shows whole. An older line that differs is no longer in such a file."""
    known: dict[tuple[str, ...], int] = {}  # keys -> the next line number, while they are shown without a gap
    for mapped in event.source_map:
        if mapped.first and mapped.first == known.get(mapped.keys, 1):
            known[mapped.keys] = mapped.first + mapped.count
            if mapped.eof and len(mapped.keys) == 1:
                yield mapped.keys[0]


# ------------------------------------------------------------ results


def _results(past: View, written: Mapping[str, int], said: Sequence[_Said]) -> Iterator[Result]:
    """Yield the results, newest first."""
    now = past.calls.number + 1
    deliveries = [d for d in past.deliveries if d.event.origin is not Origin.RESTORED]
    shown = {key: now - d.call for d in deliveries for key in _own(d)}
    keys = past.known_keys()
    named = _namings(keys, said)
    ago = {key: now - call for key, call in written.items()}
    commands = Counter(_command(d.event.label) for d in deliveries)
    met: set[str] = set()
    for delivery in reversed(deliveries):
        event, command = delivery.event, _command(delivery.event.label)
        if event.account is None or event.account.tool not in TOOLS:
            continue
        own = sorted(_own(delivery) | _in_diff(event.text, keys))
        yield Result(
            event,
            now - delivery.call,
            {key: Trace(shown.get(key, 0), ago.get(key), named.get(key)) for key in own},
            commands[command] > 1,
            command not in met,
            tuple(key for key in own if past.was_written_since(key, delivery)),
            sum(call > delivery.call for call in written.values()),
        )
        met.add(command)


def _own(delivery: Delivery) -> frozenset[str]:
    """Return the files that a call showed or wrote."""
    return frozenset(key for mapped in delivery.event.source_map for key in mapped.keys)


def _in_diff(text: str, keys: Iterable[str]) -> set[str]:
    """Return the files that have hunks in a text. A diff does not say in which directory its names are."""
    paths = {path for hunk in find_hunks(split_lines(text)) if (path := path_in(hunk.sep))} if "@@ -" in text else ()
    return {key for path in paths for key in keys if key.endswith(f"/{path}")}


def is_check(command: str) -> bool:
    """Return True for a command that tests, builds or checks a project. `command`: a simple one."""
    return _CHECK.match(command) is not None


def _command(label: str) -> str:
    """Return a command without the parts that do not distinguish it from another run."""
    for _ in range(MOST_FILTERS):
        label = label.rstrip()
        if (found := _FILTER.search(label)) is None:
            break
        label = label[: found.start()]
    command = " ".join(label.split())
    if not is_check(command):
        return command
    return " ".join(takewhile(_PLAIN.fullmatch, re.split("[;&|]", command, maxsplit=1)[0].split()))


# ------------------------------------------------------------ names


@dataclass(frozen=True, slots=True)
class _Said:
    """The agent's text in a call that was made `ago` calls ago."""

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
        elif number:  # the session does not know the call, so it gets the number of the last known call before it
            said.append(_Said(now - number, text, frozenset()))
    return said


def _namings(keys: Sequence[str], said: Iterable[_Said]) -> dict[str, int]:
    """Return, for each key, the number of calls since the agent last named it."""
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
    """Yield each name that occurs in the text as a whole word.

    One walk over the text finds all names: a word such as `src/app.py` is looked up by each of its parts and by each
    two adjacent parts. Names with other characters are in `odd` and searched one by one.
    """
    for word in _WORD.finditer(text):
        parts = word[0].rstrip(".").split("/")
        for at, part in enumerate(parts):
            for name in (part, "/".join(parts[at - 1 : at + 1])) if at else (part,):
                if name in names:
                    yield name
    yield from (name for name, pattern in odd.items() if name in text and pattern.search(text))


def _shortest_names(keys: Sequence[str]) -> dict[str, str]:
    """Return the text that names each file: the last part of its path, or the last two parts if several files share the
    last."""
    paths = {key: key.rstrip("/") for key in keys}
    sharing = Counter(path.rsplit("/", 1)[-1] for path in set(paths.values()))
    out: dict[str, str] = {}
    for key, path in paths.items():
        parts = path.rsplit("/", 2)
        out[key] = parts[-1] if sharing[parts[-1]] == 1 else "/".join(parts[-2:])
    return {key: name for key, name in out.items() if name}
