"""Rewrite the markers in the texts of a message list: collect replacements, and put them into whole texts.

Some markers are in a list but in no reply of the view. `LoggedMarkers` recognises them by what the log says. They
belong to replies that were forgotten and are in the list again, or that no list has contained yet.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from readcache.core.judging import marker
from readcache.core.judging.marker import find_span
from readcache.core.messages.editing import TextKey
from readcache.core.messages.messages import Kind
from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Delivered, Event, MarkerRecord, Origin
from readcache.core.model.text import split_lines
from readcache.core.model.view import View
from readcache.core.sync.locate import CharSpan, remaining_span
from readcache.core.sync.repair import omitted_lines, what_of
from readcache.core.sync.search import Location
from readcache.core.sync.texts import MessageText, MessageTexts

_NEVER = (-1, -1)


def unescaped(text: str) -> str:
    """Return a marker from the rest of a JSON string as it was written. Return any other text unchanged."""
    try:
        return str(json.loads(f'"{text}"')) if "\\" in text else text
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Made:
    """A marker as a reply has it. `texts`: the texts that contained its lines then, one for each source span."""

    event: Delivered | Amended
    record: MarkerRecord
    texts: tuple[str | None, ...]

    @property
    def lines(self) -> list[str] | None:
        """The lines that the marker replaces, or None if they are unknown."""
        return omitted_lines(self.record, self.texts)


class LoggedMarkers:
    """The markers of a log. The log is read for an unknown marker, and for a marker that a newer text may contain."""

    def __init__(self) -> None:
        self._read_at = _NEVER  # the number of calls, and of texts with markers, in the log when it was read
        self._made: dict[str, dict[str, Made]] = {}  # marker -> call ID -> its reply; the newest is last
        self._foreign: set[str] = set()  # texts that look like a marker, but are in no reply
        self._content: set[str] = set()  # markers that were shown as content, because the agent had written them there

    def find(
        self, line: str, tag: str, view: View, log: Callable[[], Iterable[Event]]
    ) -> Iterator[tuple[CharSpan, dict[str, Made]]]:
        """Yield the spans of the markers in a line that have a source, and the replies that contain them, by call ID.
        If the log cannot be read, only replies in the view are known, and the next call reads the log again."""
        found = {span: unescaped(line[slice(*span)]) for span in marker.find_possible(line, tag)}
        now = view.calls.number, view.ids.marked
        is_foreign = self._foreign.issuperset(found.values()) and self._read_at[1] == view.ids.marked
        if found and self._read_at != now and not is_foreign:
            self._made.clear()
            self._foreign.clear()
            try:
                self._read(log(), tag)
                self._read_at = now
            except StoreError:
                self._read(map(view.answer_of, view.deliveries), tag)
                self._read_at = _NEVER
        if self._read_at != _NEVER:
            self._foreign.update(text for text in found.values() if text not in self._made)
        before = len(line) + 1
        for start, end in sorted(found, key=lambda span: (-span[0], -span[1])):
            if end <= before and found[start, end] in self._made:
                yield (start, end), self._made[found[start, end]]
                before = start

    def is_content(self, marker: str) -> bool:
        """Return True if the marker was ever shown as content, on a line of its own or in JSON."""
        return marker in self._content

    def instead(self, made: Iterable[Made], delivered: Container[str]) -> str:
        """Return the text that replaces a marker: the lines themselves if they are known and no list has contained the
        reply yet. Otherwise return a note that they are no longer in view."""
        known = list(made)
        new = [each.lines for each in known if each.event.call_id not in delivered]
        if new and new[0] is not None and all(lines == new[0] for lines in new):
            return "\n".join(new[0])
        record = known[-1].record
        return marker.write_gone(record.wording, what_of(record), record.end - record.start + 1)

    def _read(self, log: Iterable[Event], tag: str) -> None:
        texts: dict[tuple[str, Origin], str] = {}
        for event in log:
            if not isinstance(event, (Delivered, Amended)) or (isinstance(event, Amended) and event.confirms):
                continue
            texts[event.call_id, event.origin] = event.text
            if marker.may_contain(event.text, tag):
                own = {record.wording for record in event.markers}
                for line in set(split_lines(event.text)) - own:
                    inside = {unescaped(line[slice(*span)]) for span in marker.find_possible(line, tag)}
                    self._content |= {line} | inside - own
            for record in event.markers:
                if record.sources and record.line >= 0:
                    there = tuple(
                        texts.get((source_span.call_id, source_span.origin)) for source_span in record.source_spans
                    )
                    by_call = self._made.setdefault(record.wording, {})
                    known = by_call.pop(event.call_id, None)
                    if known is None or isinstance(event, Delivered):
                        known = Made(event, record, there)
                    by_call[event.call_id] = Made(event, known.record, known.texts)


Edit = tuple[Location, Delivered, str]  # a reply's location, the amended reply, its new text with other markers
MarkerEdit = tuple[MessageText, CharSpan, str, Iterable[Made]]  # a marker's text and span, the new text, its replies


def plan_edits(
    texts: MessageTexts, edits: Iterable[Edit], orphans: Iterable[MarkerEdit] = ()
) -> tuple[dict[str, str], dict[TextKey, str]]:
    """Return the new whole texts, by call ID and by text key. Give up an edit that would change any other line."""
    changes: defaultdict[MessageText, dict[CharSpan, str]] = defaultdict(dict)
    replies: defaultdict[MessageText, dict[str, CharSpan]] = defaultdict(dict)  # call ID -> the reply's span
    for location, event, reply in edits:
        if location.text is not None and (
            found := dict(_marker_changes(location.text, location.char_span, event, reply))
        ):
            changes[location.text].update(found)
            replies[location.text][event.call_id] = location.char_span
    for text, char_span, new, made in orphans:
        if char_span not in changes[text]:
            changes[text][char_span] = new
            for each in made if text.call_id is None else ():
                replies[text].setdefault(each.event.call_id, remaining_span(each.event, text.free, ""))
    by_call: dict[str, str] = {}
    by_text_key: dict[TextKey, str] = {}
    for text, found in changes.items():
        whole = text.rewritten(found)
        if whole is None:
            continue
        call_id = text.call_id
        by_text_key[texts.order()[text][0], call_id, text.raw] = whole
        if call_id is None:
            for made_by, char_span in replies[text].items():
                by_call.setdefault(made_by, _reply_alone(text.content, char_span, found))
            continue
        others = {other.raw for other in texts.named(Kind.RESULT, call_id)} - {text.raw}
        if all(_has_lines(whole, other) for other in others):
            by_call[call_id] = whole
    return by_call, by_text_key


def _reply_alone(content: str, char_span: CharSpan, changes: Mapping[CharSpan, str]) -> str:
    """Return the part of a text that is the reply, with the changes in it."""
    low, high = char_span
    out = content[low:high]
    for (start, end), new in sorted(changes.items(), reverse=True):
        if low <= start and end <= high:
            out = out[: start - low] + new + out[end - low :]
    return out + "\n"


def _marker_changes(
    text: MessageText, char_span: CharSpan, event: Delivered, reply: str
) -> Iterator[tuple[CharSpan, str]]:
    """Yield (character span, new text) for each marker of a reply that must change in the list."""
    at, end = char_span
    shown = text.content[at:end].split("\n")
    lines = reply.split("\n")
    marked = {marker.line: marker for marker in event.markers if marker.line >= 0}
    for k, line in enumerate(shown):
        if k in marked:
            was = event.text.split("\n")[k]
            low, high = find_span(was, marked[k].wording) or (0, len(was))
            front, back = was[:low], was[high:]
            is_around = line.startswith(front) and line.endswith(back) and len(line) >= len(front) + len(back)
            if is_around and line != lines[k]:
                yield (at + low, at + len(line) - len(back)), lines[k][low : len(lines[k]) - len(back)]
        at += len(line) + 1


def _has_lines(text: str, other: str) -> bool:
    """Return True if `text` contains every line of `other`, in order."""
    lines = iter(text.split("\n"))
    return all(line in lines for line in other.split("\n"))
