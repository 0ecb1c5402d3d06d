"""The content of the page for each reader: a timeline of steps, each text once, each marker with its sources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count

from readcache.core.model.cursor import Cursor
from readcache.core.model.events import (
    Amended,
    Delivered,
    Event,
    MarkerRecord,
    Origin,
    Record,
    Removal,
    SourceSpan,
    Wrote,
)
from readcache.core.model.records import counter_of, event_for
from readcache.core.model.text import digest, digest_lines, split_lines
from readcache.core.model.tokens import CountByChars
from readcache.core.model.unconfirmed import shown_chars
from readcache.report.page.context import Context, FileRow, Files, ViewSizes, left_out_of

# Characters. A shorter text is repeated if it occurs again: naming its first occurrence would take as many.
SHORTEST_SHARED = 400


@dataclass(eq=False)
class Band:
    """Lines of a text that a marker names: `count` lines from line `at` (from 0)."""

    name: str  # the element's ID
    text: PageText
    at: int
    count: int


@dataclass(eq=False)
class PageText:
    """A text that was put before the reader, at its step of the timeline."""

    name: str  # the element's ID
    step: Step
    event: Delivered | Amended
    same: PageText | None = None  # an earlier text that is identical
    bands: dict[tuple[int, int], Band] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    erased: bool = False  # in the end, it never reached the reader


@dataclass(eq=False)
class Gap:
    """A marker in a text. `sources`: the bands of its lines when it was written. If a band is unknown, the steps of all
    its sources instead."""

    marker: MarkerRecord
    sources: list[Band | Step]

    @property
    def bands(self) -> list[Band]:
        """The bands of all its lines, in order. Empty if one of them is unknown, or is not shown."""
        found = [source for source in self.sources if isinstance(source, Band) and not source.text.erased]
        return found if len(found) == len(self.sources) else []


@dataclass(eq=False)
class Step:
    """One step of the timeline: a call with its writes and answers, or another event."""

    name: str  # the element's ID
    at: int  # its index in the timeline
    record: Record  # of its first event
    events: list[Event] = field(default_factory=list)
    texts: list[PageText] = field(default_factory=list)
    asks_again: list[Step] = field(default_factory=list)  # steps whose omitted lines this one read again immediately
    asked_again: Step | None = None  # the step that read the omitted lines of this one again immediately
    pointed_from: list[Step] = field(default_factory=list)  # steps with markers that name this one
    gone: int = 0  # number of calls that left the conversation
    sizes: ViewSizes = field(default_factory=ViewSizes)
    tokens_in_view: int = 0  # of tool results, after the step
    of: Step | None = None  # the call whose text this step amends

    @property
    def result(self) -> Delivered | None:
        """The answer to the call; None if nothing was answered."""
        return next((e for e in self.events if isinstance(e, Delivered) and e.account is not None), None)

    @property
    def shown(self) -> int:
        """Characters that the step put before the reader: a result, or another text such as a restored section."""
        if self.result is not None:
            return shown_chars(self.result)
        return sum(len(text.event.text) for text in self.texts if self.of is None)

    @property
    def left_out(self) -> int:
        """Characters that were omitted, net of markers. Negative if the markers are longer than the omitted lines."""
        return left_out_of(self.result) if self.result is not None else 0


@dataclass(eq=False)
class Timeline:
    """The timeline of one reader, its files, and the number of its markers."""

    agent_id: str
    steps: list[Step]
    files: list[FileRow]
    markers: int
    count: CountByChars  # of tokens, by the reader's model


def timelines_of(records: Sequence[Record], agent_id: str = "") -> list[Timeline]:
    """Return a timeline for each reader, in the order in which they began. If `agent_id` is given, return only the
    timeline of that reader. Each timeline contains the writes of the other readers too."""
    numbers, shared = count(1), dict[str, PageText]()
    readers = dict.fromkeys(record.agent_id for record in records if agent_id in ("", record.agent_id))
    return [_TimelineMaker(reader, numbers, shared).make(records) for reader in readers]


class _TimelineMaker:
    """Makes a timeline from one reader's log. `numbers`: for the IDs of elements, which are unique on the page.
    `shared`: texts that the page already has, by digest."""

    def __init__(self, agent_id: str, numbers: Iterator[int], shared: dict[str, PageText]) -> None:
        self._agent_id, self._numbers, self._shared = agent_id, numbers, shared
        self._steps: list[Step] = []
        self._texts: dict[tuple[str, Origin], PageText] = {}  # the newest texts of each call
        self._calls: dict[str, Step] = {}  # call ID -> its newest step
        self._numbered: dict[int, Step] = {}  # number of a call -> its step
        self._immediate_rereads = 0  # that were found
        self._context, self._files = Context(), Files()
        self._markers = 0

    def make(self, records: Sequence[Record]) -> Timeline:
        """Return the timeline, from the reader's first event to its last."""
        indexes = [index for index, record in enumerate(records) if record.agent_id == self._agent_id]
        cursor, first, last = Cursor(records, self._agent_id), indexes[0], indexes[-1]
        count = counter_of(records, self._agent_id)
        for index in range(last + 1):
            record = records[index]
            event = event_for(record, self._agent_id)
            before = {d.event.call_id for d in cursor.view.deliveries} if isinstance(event, Removal) else set()
            cursor.step()
            if event is None or index < first:
                continue
            step = self._step(record, event)
            step.gone += len(before - {d.event.call_id for d in cursor.view.deliveries}) if before else 0
            self._take(step, event)
            self._find_immediate_rereads(step, cursor.view.calls.immediate_rereads)
            self._files.take(event, step.at)
            step.sizes = self._context.after(cursor.view, event)
            step.tokens_in_view = count.of_chars(step.sizes.in_view)
        return Timeline(self._agent_id, self._steps, self._files.rows(), self._markers, count)

    def _step(self, record: Record, event: Event) -> Step:
        """Return the step of the event's call, or a new step if it has none."""
        last = self._steps[-1] if self._steps else None
        if last is None or not _is_of(last.events[-1], event):
            last = Step(f"e{next(self._numbers)}", len(self._steps), replace(record, event=event))
            self._steps.append(last)
        last.events.append(event)
        return last

    def _take(self, step: Step, event: Event) -> None:
        if isinstance(event, Delivered):
            self._calls[event.call_id] = self._numbered[event.when.call] = step
            self._add_text(step, event)
            self._markers += sum(marker.line >= 0 for marker in event.markers)
        elif isinstance(event, Wrote) and event.call_id:
            self._calls[event.call_id] = step
        elif isinstance(event, Amended):
            step.of = self._calls.get(event.call_id)
            if event.erases and (before := self._texts.get((event.call_id, event.origin))) is not None:
                before.erased = True
            self._add_text(step, event)

    def _add_text(self, step: Step, event: Delivered | Amended) -> None:
        text = PageText(f"t{next(self._numbers)}", step, event)
        text.gaps = [self._gap(marker) for marker in event.markers if marker.line >= 0]
        sources = (source for gap in text.gaps for source in gap.sources)
        for source in {source.text.step if isinstance(source, Band) else source for source in sources}:
            if step not in source.pointed_from[-1:]:
                source.pointed_from.append(step)
        if not text.gaps and len(event.text) >= SHORTEST_SHARED:
            first = self._shared.setdefault(digest(event.text), text)
            text.same = first if first is not text and first.event.text == event.text else None
        step.texts.append(text)
        self._texts[event.call_id, event.origin] = text

    def _gap(self, marker: MarkerRecord) -> Gap:
        sources: list[Band | Step] = [band for span in marker.source_spans if (band := self._band(span)) is not None]
        if len(sources) < len(marker.source_spans) or not sources:
            sources = [self._calls[name] for name in marker.sources if name in self._calls]
        return Gap(marker, sources)

    def _band(self, span: SourceSpan) -> Band | None:
        """Return the band of these lines in the newest text of the call; None if other lines are there."""
        text = self._texts.get((span.call_id, span.origin))
        if text is None or text.erased:
            return None
        if digest_lines(_lines_of(text)[span.at : span.at + span.count]) != span.digest:
            return None
        key = span.at, span.count
        if key not in text.bands:
            text.bands[key] = Band(f"b{next(self._numbers)}", text, *key)
        return text.bands[key]

    def _find_immediate_rereads(self, step: Step, immediate_rereads: Collection[int]) -> None:
        for number in sorted([*immediate_rereads][self._immediate_rereads :]):
            if (left := self._numbered.get(number)) is not None and left is not step:
                left.asked_again = step
                step.asks_again.append(left)
        self._immediate_rereads = len(immediate_rereads)


@lru_cache(maxsize=32)
def _lines_of(text: PageText) -> list[str]:
    return split_lines(text.event.text)


def _is_of(before: Event, event: Event) -> bool:
    """Return True if both events belong to the same call."""
    if not isinstance(before, (Delivered, Wrote)) or not isinstance(event, (Delivered, Wrote)):
        return False
    return before.call_id == event.call_id != "" and _number(before) == _number(event)


def _number(event: Delivered | Wrote) -> int:
    return event.call if isinstance(event, Wrote) else event.when.call
