"""An index of all visible lines: the only structure that looks at every line of every output.

    index.propose(["def run():", "    return 1"])     # the visible spans that contain most of these lines

It proposes spans; `judging.search` compares the text. Added deliveries are indexed at the next look-up. Replies that
need only line numbers never use the index.

The lines of files in unified diffs are indexed too (`find_hunks`). A diff is recognised by its form only. A diff proves
no line numbers if the agent wrote it, or if it is the content of a file.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from readcache.core.model.events import MappedSpan, Origin
from readcache.core.model.key_view import Delivery, VisibleSpan
from readcache.core.model.text import DIFF, ELISION, bodies, is_blank, split_lines

# Spans proposed for one output. In the recorded sessions, 48 save no more than 16.
MOST_PROPOSED = 16
FIRST_SLOTS = 1000
MANY_SLOTS = 100_000  # a larger table grows by half instead of doubling, which saves a megabyte
_HALF = 0xFFFFFFFF


class LineIndex:
    """The newest visible span of each visible line that is not blank."""

    def __init__(self, deliveries: Iterable[Delivery] = ()) -> None:
        self._table = _Table()
        self._visible_spans: list[VisibleSpan] = []
        self._waiting = list(deliveries)

    def add(self, delivery: Delivery) -> None:
        """Add one more delivery. It is indexed at the next look-up."""
        self._waiting.append(delivery)

    def take_in(self) -> None:
        """Index the deliveries that were added."""
        for delivery in self._waiting:
            self._take_in(delivery)
        self._waiting.clear()

    def _take_in(self, delivery: Delivery) -> None:
        """Index the lines of a delivery.

        Skip its markers, and the line that replaces lines truncated by the host.
        """
        event = delivery.event
        if not event.credited:
            return
        lines = split_lines(event.text)
        markers = {marker.line for marker in event.markers}
        markers.update(at for at, line in enumerate(lines) if line == ELISION)
        for mapped in fill_gaps(event.source_map, len(lines), markers):
            self._add(delivery, mapped, lines)
            if mapped.sep is None:
                inside = lines[mapped.at : mapped.at + mapped.count]
                for found in find_hunks(inside):
                    # Agents miscount lines. `cat <<EOF` prints a diff that its own command contains.
                    is_written = mapped.keys or event.origin is Origin.COMMAND or "@@ -" in event.label
                    first = 0 if is_written else found.first
                    self._add(delivery, replace(found, at=mapped.at + found.at, first=first), lines)

    def _add(self, delivery: Delivery, mapped: MappedSpan, lines: Sequence[str]) -> None:
        self._visible_spans.append(VisibleSpan(delivery, mapped))
        inside = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
        self._table.put([body for body in {*inside} if not is_blank(body)], len(self._visible_spans))

    def propose(self, texts: Iterable[str]) -> list[VisibleSpan]:
        """Return at most `MOST_PROPOSED` visible spans that contain most of these bodies.

        The best comes first, and of equal ones the newer.
        """
        self.take_in()
        votes = Counter(self._table.numbers_of(texts))
        best = sorted(votes, key=lambda number: (-votes[number], -number))
        return [self._visible_spans[number - 1] for number in best[:MOST_PROPOSED]]


class _Table:
    """The number, from 1 on, of the newest visible span of each line: a hash table with eight bytes for each line.

    Half of the bytes are the line's hash. A dict takes ten times as much. Two lines with the same hash are one entry,
    which only costs a useless comparison.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * FIRST_SLOTS))
        self._used = 0

    def put(self, lines: Sequence[str], number: int) -> None:
        """Record that the visible span `number` is now the newest that contains these lines."""
        least = (self._used + len(lines)) * 4 // 3 + 1  # in a fuller table, the search for a slot takes long
        if least > len(self._slots):
            self._grow(max(least, len(self._slots) * (3 if len(self._slots) > MANY_SLOTS else 4) // 2))
        slots = self._slots
        for name, at in self._find([hash(line) & _HALF for line in lines]):
            self._used += not slots[at]
            slots[at] = name << 32 | number

    def numbers_of(self, lines: Iterable[str]) -> Iterator[int]:
        """Yield the number of the visible span of each of these lines that has one."""
        slots = self._slots
        for _, at in self._find(hash(line) & _HALF for line in lines):
            if slot := slots[at]:
                yield slot & _HALF

    def _find(self, names: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield each of these hashes and its slot, or the next free slot if it has none.

        The caller may fill that slot before it asks for the next hash.
        """
        slots, size = self._slots, len(self._slots)
        for name in names:
            at = name % size
            while (slot := slots[at]) and slot >> 32 != name:
                at = at + 1 if at + 1 < size else 0
            yield name, at

    def _grow(self, size: int) -> None:
        kept, self._slots = [slot for slot in self._slots if slot], array("Q", bytes(8 * size))
        for slot, (_, at) in zip(kept, self._find(slot >> 32 for slot in kept), strict=True):
            self._slots[at] = slot


def fill_gaps(source_map: Iterable[MappedSpan], count: int, markers: Iterable[int] = ()) -> Iterator[MappedSpan]:
    """Yield spans that cover a text of `count` lines: the mapped spans of files, and spans of no file between them.

    `markers`: the indexes of lines to omit.
    """
    stops: list[tuple[int, int, MappedSpan | None]] = [(line, line + 1, None) for line in markers]
    stops += [(p.at, p.at + p.count, p) for p in source_map]
    at = 0
    for low, high, mapped in [*sorted(stops, key=lambda stop: stop[0]), (count, count, None)]:
        if low > at:
            yield MappedSpan((), at, low - at)
        if mapped is not None and low >= at:
            yield mapped
        at = max(at, high)


_HEADER = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def find_changes(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield (low, high) of each hunk, including its header. A truncated hunk ends at the last line that fits."""
    at = 0
    while at < len(lines):
        header = _HEADER.match(lines[at]) if lines[at].startswith("@@ -") else None
        low, at = at, at + 1
        if header is None:
            continue
        old, new = int(header[1] or 1), int(header[3] or 1)
        while at < len(lines) and (old > 0 or new > 0):
            mark = lines[at][:1]
            if mark in ("", " ", "+") and new > 0:  # editors remove the blank of an empty context line
                old, new = old - (mark != "+"), new - 1
            elif mark in ("-", "\\"):
                old -= mark == "-"
            else:
                break
            at += 1
        yield low, at


def find_hunks(lines: Sequence[str]) -> Iterator[MappedSpan]:
    """Yield the runs of context and new lines in hunks, each with its number in the new file.

    They have no key, because the directory of the names in a diff is not known.
    """
    done, path = 0, ""
    for low, high in find_changes(lines):
        path = next((_path(line) for line in reversed(lines[done:low]) if line.startswith("+++ ")), path)
        header = _HEADER.match(lines[low])
        start, number, done = low + 1, int(header[2]) if header else 0, high
        for at in range(low + 1, high):
            if lines[at][:1] in ("-", "\\"):
                yield from _mapped(start, at, number, path)
                start, number = at + 1, number + at - start
        yield from _mapped(start, high, number, path)


def _path(line: str) -> str:
    return line[4:].partition("\t")[0].removeprefix("b/")


def _mapped(low: int, high: int, number: int, path: str) -> Iterator[MappedSpan]:
    if high > low and number:
        yield MappedSpan((), low, high - low, number, DIFF + path)
