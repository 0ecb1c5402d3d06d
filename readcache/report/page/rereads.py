"""Which files each call asked for, and how often their lines had been asked for before."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from readcache.model.bounces import size_of
from readcache.model.events import Delivered, Event, Wrote
from readcache.model.spans import Span, SpanMap, merge_spans, subtract
from readcache.model.writes import concerns


class Cell(NamedTuple):
    """A call that asked for numbered lines of a file. `times`: how often these lines have been asked for by then, on
    average, rounded. `is_left_out`: half of them or more were left out."""

    at: int
    times: int
    is_left_out: bool


@dataclass
class FileRow:
    """One file (a key, see `claims`)."""

    key: str
    cells: list[Cell] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)  # steps that wrote it, or found it changed
    again: int = 0  # lines that had been asked for before
    left_out: int = 0  # lines
    times: SpanMap[int] = field(default_factory=SpanMap)  # of each line

    def ask(self, at: int, shown: list[Span], left_out: list[Span]) -> None:
        """Step `at` asked for these lines."""
        asked = merge_spans([*shown, *left_out])
        known = [stretch for span in asked for stretch in self.times.overlaps(*span)]
        again = tuple((first, last) for first, last, _ in known)
        for first, last in subtract(asked, again):
            self.times.assign(first, last, 1)
        for first, last, times in known:
            self.times.assign(first, last, times + 1)
        lines, missing = size_of(asked), size_of(merge_spans(left_out))
        if not lines:
            return
        self.again += size_of(again)
        self.left_out += missing
        total = lines + sum(times * (last - first + 1) for first, last, times in known)
        self.cells.append(Cell(at, (2 * total + lines) // (2 * lines), 2 * missing >= lines))


class Files:
    """The rows of one reader."""

    def __init__(self) -> None:
        self._by_key: dict[str, FileRow] = {}

    def take(self, event: Event, at: int) -> None:
        """Step `at` has this event."""
        if isinstance(event, Wrote):
            for row in self._by_key.values():
                if row.writes[-1:] != [at] and any(concerns(written, row.key) for written in event.keys):
                    row.writes.append(at)
        elif isinstance(event, Delivered):
            shown, left_out = defaultdict[str, list[Span]](list), defaultdict[str, list[Span]](list)
            for piece in event.pieces:
                for key in piece.keys if piece.first else ():
                    shown[key].append((piece.first, piece.first + piece.count - 1))
            for pointer in event.pointers:
                if pointer.path is not None:
                    left_out[pointer.path].append((pointer.start, pointer.end))
            for key in dict.fromkeys((*shown, *left_out)):
                self._by_key.setdefault(key, FileRow(key)).ask(at, shown[key], left_out[key])
            for key in event.changed:
                if key in self._by_key:
                    self._by_key[key].writes.append(at)

    def rows(self) -> list[FileRow]:
        """Those whose lines were asked for again most come first."""
        asked = (row for row in self._by_key.values() if row.cells)
        return sorted(asked, key=lambda row: (-row.again, -len(row.cells), row.key))
