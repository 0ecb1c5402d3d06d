"""Sum up each step of a session: characters shown and omitted, text in view, files requested again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from readcache.core.model.claims import concerns
from readcache.core.model.events import Amended, Delivered, Event, Origin, Removal, Wrote
from readcache.core.model.reply import Outcome
from readcache.core.model.rereads import size_of
from readcache.core.model.spans import Span, SpanMap, merge_spans, subtract
from readcache.core.model.unconfirmed import shown_chars
from readcache.core.model.view import View


def left_out_of(event: Delivered) -> int:
    """Return the number of omitted characters, net of markers. It is negative if the markers are longer than the
    omitted lines."""
    if event.account is None or event.account.outcome is Outcome.FULL:
        return 0
    return event.account.output_chars - shown_chars(event)


class ViewSizes(NamedTuple):
    """The size of the view after one step, in characters."""

    in_view: int = 0
    back: int = 0  # the part that was restored, or read again soon after it had left
    spared: int = 0  # omitted from results that are still visible, without immediate rereads


class Context:
    """Follows the size of one reader's view."""

    def __init__(self) -> None:
        self._back: dict[str, int] = {}
        self._spared: dict[str, tuple[int, int]] = {}  # call ID -> (number of the call, characters)
        self._rereads = self._immediate_rereads = 0

    def after(self, view: View, event: Event) -> ViewSizes:
        """Return the sizes after this event. The view must already contain the event."""
        rereads, immediate_rereads = view.calls.counts["reread_calls"], view.calls.immediate_rereads
        if isinstance(event, Delivered):
            if event.origin is Origin.RESTORED or rereads > self._rereads:
                self._back[event.call_id] = len(event.text)
            if (left := left_out_of(event)) > 0:
                self._spared[event.call_id] = event.when.call, left
        if isinstance(event, Removal | Amended) or len(immediate_rereads) > self._immediate_rereads:
            self._back = {name: chars for name, chars in self._back.items() if view.is_visible(name)}
            self._spared = {
                name: one
                for name, one in self._spared.items()
                if view.is_visible(name) and one[0] not in immediate_rereads
            }
        self._rereads, self._immediate_rereads = rereads, len(immediate_rereads)
        back = min(view.carried, sum(self._back.values()))
        return ViewSizes(view.carried, back, sum(chars for _, chars in self._spared.values()))


class Cell(NamedTuple):
    """A step that requested numbered lines of a file. `at`: the index of the step. `times`: how often these lines have
    been requested up to this step, on average, rounded. `is_left_out`: True if at least half of them were omitted."""

    at: int
    times: int
    is_left_out: bool


@dataclass
class FileRow:
    """One file, named by its key: a path, or a blob in git."""

    key: str
    cells: list[Cell] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)  # steps that wrote the file, or found it changed
    again: int = 0  # lines that had been requested before
    left_out: int = 0  # omitted lines
    times: SpanMap[int] = field(default_factory=SpanMap)  # number of requests for each line

    def ask(self, at: int, shown: list[Span], left_out: list[Span]) -> None:
        """Record that step `at` requested these lines. `shown` and `left_out`: the shown and the omitted ones."""
        asked = merge_spans([*shown, *left_out])
        known = [part for span in asked for part in self.times.overlaps(*span)]
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
    """The rows of all files of one reader."""

    def __init__(self) -> None:
        self._by_key: dict[str, FileRow] = {}

    def take(self, event: Event, at: int) -> None:
        """Record an event of step `at`."""
        if isinstance(event, Wrote):
            for row in self._by_key.values():
                if row.writes[-1:] != [at] and any(concerns(written, row.key) for written in event.keys):
                    row.writes.append(at)
        elif isinstance(event, Delivered):
            shown, left_out = defaultdict[str, list[Span]](list), defaultdict[str, list[Span]](list)
            for mapped in event.source_map:
                for key in mapped.keys if mapped.first else ():
                    shown[key].append((mapped.first, mapped.first + mapped.count - 1))
            for marker in event.markers:
                if marker.path is not None:
                    left_out[marker.path].append((marker.start, marker.end))
            for key in dict.fromkeys((*shown, *left_out)):
                self._by_key.setdefault(key, FileRow(key)).ask(at, shown[key], left_out[key])
            for key in event.changed:
                if key in self._by_key:
                    self._by_key[key].writes.append(at)

    def rows(self) -> list[FileRow]:
        """Return the rows of all requested files. Files with the most lines requested again come first."""
        asked = (row for row in self._by_key.values() if row.cells)
        return sorted(asked, key=lambda row: (-row.again, -len(row.cells), row.key))
